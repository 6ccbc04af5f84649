//! What a caller may not see, it cannot tell from what is not there: the tests of that, and the made-up worlds they are
//! held in.

mod news;
mod property;
mod reuse;
mod rule;
mod world;

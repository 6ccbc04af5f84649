//! Tests that a hidden tool is indistinguishable from an absent one, in generated catalogs.

mod news;
mod property;
mod reuse;
mod rule;
mod world;

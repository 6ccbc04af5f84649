//! The domain of hikite, pure: what a tool, a module, a category and a catalog are, who may see what,
//! and what can go wrong. Nothing here awaits, reads a clock or touches a file or a socket.

pub mod about;
pub mod annotation;
pub mod answer;
pub mod breaker;
pub mod caller;
pub mod catalog;
pub mod category;
pub mod check;
pub mod error;
pub mod fault;
pub mod json;
pub mod key;
pub mod level;
pub mod limits;
pub mod listing;
pub mod mask;
pub mod name;
pub mod parameter;
pub mod pattern;
pub mod rate;
pub mod register;
pub mod retry;
pub mod seal;
pub mod search;
pub mod secret;
pub mod selection;
pub mod source;
pub mod suggest;
pub mod switch;
pub mod time;
pub mod trace;
pub mod uri;
pub mod view;

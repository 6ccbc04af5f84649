//! Tests that a hidden tool is indistinguishable from an absent one, in generated catalogs.

mod fixture;
mod notification;
mod property;
mod reuse;
mod rule;

//! Descriptions of modules, and which of them each conversation has received.

mod description;
mod sent_description;

#[cfg(test)]
mod tests;

pub(crate) use description::{ModuleDescription, enabled};
pub(crate) use sent_description::{DescriptionRequest, SentDescriptions};

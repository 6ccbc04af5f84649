//! A category as the config describes it.

use std::sync::Arc;

use crate::origin::ConfigOrigin;
use crate::tool_selection::Selection;

#[derive(Clone, Debug)]
pub struct CategoryRule {
    pub name: Arc<str>,
    pub description: String,
    pub servers: Vec<Arc<str>>,
    pub selection: Selection,
    /// Usage note that is returned with the category's tools.
    pub skill: Option<String>,
    /// Origin of the configuration, which decides who may change the category.
    pub origin: ConfigOrigin,
}

//! A module as the config describes it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::call_policy::{CallPolicy, ToolMetadata};
use crate::origin::ConfigOrigin;
use crate::pin::Pinning;
use crate::source::Source;
use crate::tool_selection::Selection;

/// A configured module and the source that provides its tools.
#[derive(Clone, Debug)]
pub struct ModuleRule {
    pub name: Arc<str>,
    pub description: String,
    pub selection: Arc<Selection>,
    pub source: Arc<dyn Source>,
    /// Metadata of registered tools, by the source's own tool names.
    pub about: Arc<HashMap<Arc<str>, Arc<ToolMetadata>>>,
    /// `true` for modules of registered tools, which can change at run time.
    pub registered: bool,
    /// Origin of the configuration, which decides who may change the module.
    pub origin: ConfigOrigin,
    /// Call policy of the module's tools, unless an override sets one.
    pub policy: CallPolicy,
    /// Call policy for reading the module's resources.
    pub resources: CallPolicy,
    /// Treatment of tools that nobody has approved.
    pub pins: Pinning,
}

impl ModuleRule {
    /// Returns a module with default settings.
    pub fn new(name: impl Into<Arc<str>>, source: Arc<dyn Source>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            selection: Arc::default(),
            source,
            about: Arc::default(),
            registered: false,
            origin: ConfigOrigin::File,
            policy: CallPolicy::default(),
            resources: CallPolicy::default(),
            pins: Pinning::Off,
        }
    }
}

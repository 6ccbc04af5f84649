//! The key of a tool, written `module:tool`.

use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolKey {
    pub module: Arc<str>,
    pub tool: Arc<str>,
}

impl ToolKey {
    pub fn new(module: impl Into<Arc<str>>, tool: impl Into<Arc<str>>) -> Self {
        Self { module: module.into(), tool: tool.into() }
    }
}

impl fmt::Display for ToolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.module, self.tool)
    }
}

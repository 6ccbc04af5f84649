//! Metadata of a module that needs no call.

use hikite_core::risk::Risk;

use super::Service;
use crate::file::TextLanguage;

/// Metadata of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSummary<'a> {
    pub name: &'a str,
    pub risk: Risk,
    pub description: &'a str,
    /// Set if the tool returns paginated lists.
    pub pages: bool,
    /// Kinds of its output shapes: `table`, `record`, `text`.
    pub forms: Vec<&'static str>,
}

impl Service {
    /// Returns the tools in file order.
    pub fn about(&self, language: TextLanguage) -> impl Iterator<Item = ToolSummary<'_>> {
        self.tools.iter().map(move |(name, tool)| ToolSummary {
            name,
            risk: tool.risk,
            description: tool.description.get(language),
            pages: tool.is_paged(),
            forms: tool.forms(),
        })
    }

    /// Returns the number of tools per risk, in the order of `Risk::ALL`.
    pub fn risks(&self) -> [usize; 3] {
        Risk::ALL.map(|risk| self.tools.iter().filter(|(_, tool)| tool.risk == risk).count())
    }

    /// Returns the number of resources and prompts.
    pub fn extras(&self) -> (usize, usize) {
        (self.resources.len(), self.prompts.len())
    }
}

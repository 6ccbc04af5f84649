//! What can be told of a module without calling anything.

use hikite_core::risk::Risk;

use super::Service;
use crate::file::Language;

/// A tool in the words of its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About<'a> {
    pub name: &'a str,
    pub risk: Risk,
    pub description: &'a str,
    /// Whether it gives long lists in parts.
    pub pages: bool,
    /// The kinds of its compact forms: `table`, `record`, `text`.
    pub forms: Vec<&'static str>,
}

impl Service {
    /// Its tools in the order of the file.
    pub fn about(&self, language: Language) -> impl Iterator<Item = About<'_>> {
        self.tools.iter().map(move |(name, tool)| About {
            name,
            risk: tool.risk,
            description: tool.description.get(language),
            pages: tool.is_paged(),
            forms: tool.forms(),
        })
    }

    /// How many tools of each risk there are, in the order of `Risk::ALL`.
    pub fn risks(&self) -> [usize; 3] {
        Risk::ALL.map(|risk| self.tools.iter().filter(|(_, tool)| tool.risk == risk).count())
    }

    /// How many resources and prompts there are.
    pub fn extras(&self) -> (usize, usize) {
        (self.resources.len(), self.prompts.len())
    }
}

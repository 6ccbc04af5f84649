//! Selection of operations to import. A model chooses badly among hundreds of tools, so importing all of them is rarely
//! useful.

use hikite_core::suggestion::did_you_mean;

use super::ApiOperation;

/// Filter for operations. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct OperationFilter {
    /// Operation ids or tool names.
    pub operations: Vec<String>,
    pub tag: Option<String>,
    /// Path prefix.
    pub path: Option<String>,
}

impl OperationFilter {
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.tag.is_none() && self.path.is_none()
    }

    /// Returns the matching operations, or an error for a filter that matches nothing.
    pub fn of<'o, 'a>(&self, all: &'o [ApiOperation<'a>]) -> Result<Vec<&'o ApiOperation<'a>>, String> {
        let is_called = |operation: &ApiOperation<'_>, word: &str| operation.id == Some(word) || operation.name == word;
        for word in &self.operations {
            if !all.iter().any(|operation| is_called(operation, word)) {
                let near = did_you_mean(word, all.iter().map(|operation| operation.id.unwrap_or(&operation.name)));
                return Err(with_hint(format!("There is no operation `{word}`."), near));
            }
        }
        if let Some(tag) = &self.tag
            && !all.iter().any(|operation| operation.tags.contains(&tag.as_str()))
        {
            let near = did_you_mean(tag, all.iter().flat_map(|operation| operation.tags.iter().copied()));
            return Err(with_hint(format!("No operation has the tag `{tag}`."), near));
        }
        if let Some(path) = &self.path
            && !all.iter().any(|operation| operation.path.starts_with(path.as_str()))
        {
            return Err(format!("No path starts with `{path}`."));
        }
        let is_meant = |operation: &&ApiOperation<'_>| {
            (self.operations.is_empty() || self.operations.iter().any(|word| is_called(operation, word)))
                && self.tag.as_deref().is_none_or(|tag| operation.tags.contains(&tag))
                && self.path.as_deref().is_none_or(|path| operation.path.starts_with(path))
        };
        Ok(all.iter().filter(is_meant).collect())
    }
}

fn with_hint(what: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{what}\nhint: {hint}"),
        None => what,
    }
}

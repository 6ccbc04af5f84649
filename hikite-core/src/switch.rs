//! Disabled tools and the reason: the config file, a runtime switch, an unavailable dependency, or a definition that is
//! not approved.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::key::ToolKey;
use crate::pin::HoldReason;

/// Tools that were enabled or disabled at runtime; persisted.
pub type Switches = HashMap<ToolKey, bool>;

/// Returns the modules of tools whose switch changed.
pub(crate) fn switched_modules(before: &Switches, after: &Switches) -> Vec<Arc<str>> {
    let differs = |other: &Switches, key: &ToolKey, on: bool| other.get(key) != Some(&on);
    let gone = before.iter().filter(|(key, on)| differs(after, key, **on));
    let new = after.iter().filter(|(key, on)| differs(before, key, **on));
    let mut modules: Vec<Arc<str>> = gone.chain(new).map(|(key, _)| Arc::clone(&key.module)).collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisabledReason {
    /// Disabled in the config file.
    File,
    /// Disabled at runtime.
    Switch,
    /// A dependency does not exist.
    DependencyMissing(Arc<str>),
    /// A dependency is disabled.
    DependencyDisabled(Arc<str>),
    /// The definition is not approved.
    Held { key: ToolKey, why: HoldReason },
}

impl DisabledReason {
    pub fn error(&self, name: &str) -> Error {
        let error = |message: String| Error::new(ErrorKind::ToolDisabled, message);
        match self {
            Self::File => {
                error(format!("The tool `{name}` is disabled.")).hint("It is disabled in the config. Use another tool.")
            }
            Self::Switch => error(format!("The tool `{name}` is disabled."))
                .hint(format!("Use another tool, or enable it with `hikite tools enable {name}`.")),
            Self::DependencyMissing(needed) | Self::DependencyDisabled(needed) => {
                error(format!("The tool `{name}` is disabled: {}.", self.reason()))
                    .hint(format!("Use another tool, or make `{needed}` available, which it needs."))
            }
            Self::Held { key, why } => error(format!("The tool `{name}` is held back: it {}.", why.reason()))
                .hint(format!("Review it with `hikite pin show {key}`.")),
        }
    }

    /// Returns a short explanation for people.
    pub fn reason(&self) -> String {
        match self {
            Self::File => "disabled in the config".into(),
            Self::Switch => "disabled".into(),
            Self::DependencyMissing(needed) => format!("it needs `{needed}`, which is not registered"),
            Self::DependencyDisabled(needed) => format!("it needs `{needed}`, which is disabled"),
            Self::Held { why, .. } => format!("it {}", why.reason()),
        }
    }
}

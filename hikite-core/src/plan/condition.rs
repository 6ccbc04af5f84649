//! The `if` of a task.

use super::{Missing, Scope};

#[derive(Clone, Debug, PartialEq)]
pub struct Condition(String);

impl Condition {
    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, Missing> {
        let _ = scope;
        Ok(!self.0.is_empty())
    }
}

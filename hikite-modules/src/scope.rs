//! Variables of expressions: arguments, step results, and the current element. Scopes can be nested.

use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub(crate) struct VariableScope<'a> {
    outer: Option<&'a VariableScope<'a>>,
    own: Vec<(Box<str>, Value)>,
}

impl VariableScope<'_> {
    /// Creates a scope without an outer one.
    pub(crate) fn of(members: Map<String, Value>) -> Self {
        Self { outer: None, own: members.into_iter().map(|(name, value)| (name.into(), value)).collect() }
    }

    pub(crate) fn within<'a>(outer: &'a VariableScope<'a>) -> VariableScope<'a> {
        VariableScope { outer: Some(outer), own: Vec::new() }
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        match self.own.iter_mut().find(|(own, _)| **own == *name) {
            Some((_, old)) => *old = value,
            None => self.own.push((name.into(), value)),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.set(name, value);
        self
    }

    /// Returns a variable, or null if it is not set.
    pub(crate) fn get(&self, name: &str) -> &Value {
        let own = self.own.iter().find(|(own, _)| **own == *name).map(|(_, value)| value);
        own.unwrap_or_else(|| self.outer.map_or(&Value::Null, |outer| outer.get(name)))
    }
}

//! JSON with references in it. They are filled in on the parsed tree, never on text, and what is filled in is not
//! looked at again.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Template(Value);

/// What references are filled in from.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The result of a task by its place; `None` if it has none.
    pub result: &'a (dyn Fn(usize) -> Option<&'a Value> + 'a),
    /// The element of `for_each`, and its place.
    pub item: Option<(&'a Value, usize)>,
}

/// A reference that leads nowhere, and what there is instead: in words for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub message: String,
    pub hint: String,
}

impl Template {
    pub fn resolve(&self, scope: &Scope<'_>) -> Result<Value, Missing> {
        let _ = scope;
        Ok(self.0.clone())
    }

    /// As it was written, and JSON pointers to the places that a reference fills.
    pub fn as_written(&self) -> (&Value, Vec<String>) {
        (&self.0, Vec::new())
    }
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("item", &self.item).finish_non_exhaustive()
    }
}

//! The schema as a JSON document. Resolves internal references as the validators do, so that all other readers see the
//! same schemas. Never loads anything external.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::uri::decode_percent;
use crate::violation::step;

/// Maximum number of schemas combined for one value.
const APPLIED_MAX: usize = 64;
/// Maximum total bytes of JSON Pointers to all schemas; the validators store each.
const POINTERS_MAX: usize = 16 << 20;

pub(super) struct SchemaDocument {
    pub(super) root: Value,
    /// JSON Pointers of schemas with an anchor.
    anchors: HashMap<String, String>,
    /// Addresses of the patterns that need backtracking.
    pub(super) backtracking_patterns: HashSet<usize>,
}

impl SchemaDocument {
    /// Indexes the document. The error names the exceeded limit.
    pub(super) fn new(root: Value) -> Result<Self, String> {
        let mut walk = SchemaWalk { pointer: String::new(), bytes_left: POINTERS_MAX, anchors: HashMap::new() };
        walk.visit(&root)?;
        Ok(Self { root, anchors: walk.anchors, backtracking_patterns: HashSet::new() })
    }

    /// Resolves `#`, `#/a/b` or `#anchor`, each optionally after the root's own `$id`.
    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !resource.is_empty() && Some(resource) != own {
            return None;
        }
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decode_percent(fragment)?);
        }
        self.root.pointer(self.anchors.get(fragment)?)
    }

    /// Returns `true` if this pattern of the document needs backtracking.
    pub(super) fn needs_backtracking(&self, pattern: &str) -> bool {
        !self.backtracking_patterns.is_empty() && self.backtracking_patterns.contains(&pattern.as_ptr().addr())
    }

    /// Returns the schema and everything that it unconditionally applies to the same value (`$ref`, `allOf`), without
    /// duplicates.
    pub(super) fn applied<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![schema];
        let mut next = 0;
        while let Some(schema) = found.get(next).copied() {
            next += 1;
            let reference = schema.get("$ref").and_then(Value::as_str);
            let target = reference.and_then(|reference| self.target(reference));
            let all = schema.get("allOf").and_then(Value::as_array);
            for schema in target.into_iter().chain(all.into_iter().flatten()) {
                if found.len() < APPLIED_MAX && !found.iter().any(|known| std::ptr::eq(*known, schema)) {
                    found.push(schema);
                }
            }
        }
        found
    }
}

/// A traversal of the whole document.
struct SchemaWalk {
    pointer: String,
    bytes_left: usize,
    anchors: HashMap<String, String>,
}

impl SchemaWalk {
    fn visit(&mut self, value: &Value) -> Result<(), String> {
        self.bytes_left =
            self.bytes_left.checked_sub(self.pointer.len()).ok_or("the schema has too many and too long names")?;
        match value {
            Value::Object(members) => {
                let named = ["$anchor", "$dynamicAnchor"].into_iter().filter_map(|k| members.get(k)?.as_str());
                let old = members.get("$id").and_then(|id| id.as_str()?.strip_prefix('#'));
                for name in named.chain(old).filter(|name| !name.is_empty()) {
                    self.anchors.insert(name.to_owned(), self.pointer.clone());
                }
                members.iter().try_for_each(|(name, value)| self.below(&step(name), value))
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, value)| self.below(&format!("/{index}"), value))
            }
            _ => Ok(()),
        }
    }

    fn below(&mut self, step: &str, value: &Value) -> Result<(), String> {
        if !(value.is_object() || value.is_array()) {
            return Ok(());
        }
        let length = self.pointer.len();
        self.pointer.push_str(step);
        let done = self.visit(value);
        self.pointer.truncate(length);
        done
    }
}

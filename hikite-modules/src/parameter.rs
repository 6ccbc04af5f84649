//! Argument names that templates may use, from the schema of a tool.

use hikite_core::json::{Object, Raw};
use hikite_core::suggestion;

use crate::reference::ArgumentReference;

/// Schema keywords that may add properties.
const COMPOSED: [&str; 6] = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if"];

#[derive(Debug)]
pub(crate) struct ArgumentNames {
    properties: Object,
    /// Set if properties are defined elsewhere, so that any name is accepted.
    is_composed: bool,
    /// Set if the schema allows additional arguments.
    is_open: bool,
}

impl ArgumentNames {
    pub(crate) fn read(schema: &Raw) -> Self {
        let schema = schema.object().unwrap_or_default();
        let properties = properties(&schema).unwrap_or_default();
        let is_composed = properties.is_empty() && is_composed(&schema);
        let others = schema.get("additionalProperties").is_some_and(|others| others.as_str() != "false");
        let is_open = is_composed || others || schema.get("patternProperties").is_some();
        Self { properties, is_composed, is_open }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|(name, _)| name)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Parses a reference, or returns what is wrong with it.
    pub(crate) fn reference(&self, written: &str) -> Result<ArgumentReference, String> {
        if self.properties.get(written).is_some() {
            return Ok(ArgumentReference::whole(written));
        }
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
        let reference = ArgumentReference::dotted(written).filter(|_| written.chars().all(is_name));
        let Some(reference) = reference else {
            return Err("what stands between `{` and `}` is not the name of a parameter; a literal brace is \
                        written twice"
                .into());
        };
        if self.is_composed {
            return Ok(reference);
        }
        let Some(schema) = self.properties.get(reference.argument()) else {
            return Err(unknown(reference.argument(), self.names()));
        };
        below(schema, &reference)?;
        Ok(reference)
    }
}

/// Checks the path below an argument against its schema, as far as it is known.
fn below(schema: &Raw, reference: &ArgumentReference) -> Result<(), String> {
    let mut schema = schema.clone();
    for step in reference.further() {
        let Some(object) = schema.object().filter(|object| !is_composed(object)) else { return Ok(()) };
        let Some(properties) = properties(&object) else { return Ok(()) };
        let Some(next) = properties.get(step) else {
            return Err(unknown(reference.written(), properties.iter().map(|(name, _)| name)));
        };
        schema = next.clone();
    }
    Ok(())
}

fn properties(schema: &Object) -> Option<Object> {
    schema.get("properties")?.object()
}

fn is_composed(schema: &Object) -> bool {
    COMPOSED.iter().any(|word| schema.get(word).is_some())
}

fn unknown<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> String {
    let wrong = written.rsplit('.').next().unwrap_or(written);
    match suggestion::did_you_mean(wrong, known) {
        Some(near) => format!("there is no parameter `{written}`; {near}"),
        None => format!("there is no parameter `{written}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, written: &str, expected: Result<(), &str>) {
        let parameters = ArgumentNames::read(&Raw::parse(schema.to_owned()).expect("valid"));
        let found = parameters.reference(written).map(|_| ());
        assert_eq!(found, expected.map_err(ToOwned::to_owned), "{schema} {written}");
    }

    #[test]
    fn only_what_the_schema_has_can_be_named() {
        let schema = r#"{"properties":{"user":{"properties":{"id":{}}},"free":{"type":"object"},"a.b":{}}}"#;
        check(schema, "user", Ok(()));
        check(schema, "user.id", Ok(()));
        check(schema, "a.b", Ok(()));
        check(schema, "free.anything.at.all", Ok(()));
        check(schema, "usr", Err("there is no parameter `usr`. Did you mean `user`?"));
        check(schema, "user.ids", Err("there is no parameter `user.ids`. Did you mean `id`?"));
        check("{}", "x", Err("there is no parameter `x`"));
        check(r#"{"additionalProperties":true}"#, "x", Err("there is no parameter `x`"));
        check(r##"{"$ref":"#/$defs/a"}"##, "x", Ok(()));
        for bad in ["", " user", "user }", "a..b", "user id", "query { x"] {
            let parameters = ArgumentNames::read(&Raw::parse(schema).expect("valid"));
            assert!(parameters.reference(bad).is_err(), "{bad}");
        }
    }
}

//! Input forms generated from a tool's JSON schema, and the arguments read from them. Parts of a schema that no form
//! can express are entered as JSON.

use serde_json::{Map, Value};

use crate::form::SubmittedFields;

/// Prefix of form fields that are arguments.
pub(crate) const PREFIX: &str = "p.";

/// The form input of one argument.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) is_required: bool,
    pub(crate) kind: FieldKind,
    /// The submitted value, or the default.
    pub(crate) value: String,
    pub(crate) hint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text,
    Number,
    Integer,
    Boolean,
    /// One of several values, encoded as JSON.
    Choice(Vec<String>),
    Json,
}

impl Field {
    pub(crate) fn input(&self) -> &'static str {
        match self.kind {
            FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Integer => "whole",
            FieldKind::Boolean => "truth",
            FieldKind::Choice(_) => "choice",
            FieldKind::Json => "json",
        }
    }

    pub(crate) fn options(&self) -> Vec<String> {
        match &self.kind {
            FieldKind::Boolean => vec!["true".into(), "false".into()],
            FieldKind::Choice(options) => options.clone(),
            _ => Vec::new(),
        }
    }
}

/// Returns the inputs of a schema, required ones first, with the values of `filled`.
pub(crate) fn fields(schema: &Value, filled: &SubmittedFields) -> Vec<Field> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut fields: Vec<Field> = properties
        .map(|(name, property)| {
            let property = resolve(schema, property);
            let kind = kind(property);
            let written = filled.find(&format!("{PREFIX}{name}")).map(str::to_owned);
            let usual = property.get("default").filter(|value| !value.is_null()).map(|value| shown(value, &kind));
            let text = |key| property.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            Field {
                name: name.clone(),
                description: text("description"),
                is_required: required.contains(&name.as_str()),
                value: written.or(usual).unwrap_or_default(),
                hint: hint(property, &kind),
                kind,
            }
        })
        .collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

/// Reads the arguments; an error names the invalid field.
pub(crate) fn arguments(schema: &Value, filled: &SubmittedFields) -> Result<Value, String> {
    let mut arguments = Map::new();
    for field in fields(schema, &SubmittedFields::default()) {
        let Some(written) = filled.find(&format!("{PREFIX}{}", field.name)) else { continue };
        if written.is_empty() {
            continue;
        }
        let value = match field.kind {
            FieldKind::Text => Value::from(written),
            FieldKind::Number | FieldKind::Integer | FieldKind::Boolean | FieldKind::Choice(_) => {
                serde_json::from_str(written.trim()).unwrap_or_else(|_| Value::from(written))
            }
            FieldKind::Json => serde_json::from_str(written).map_err(|error| format!("{}: {error}", field.name))?,
        };
        arguments.insert(field.name, value);
    }
    Ok(Value::Object(arguments))
}

/// Resolves one `$ref` within the schema.
fn resolve<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    let target = property.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(property)
}

fn kind(property: &Value) -> FieldKind {
    if let Some(options) = property.get("enum").and_then(Value::as_array) {
        return FieldKind::Choice(options.iter().map(Value::to_string).collect());
    }
    let named = match property.get("type") {
        Some(Value::String(one)) => Some(one.as_str()),
        Some(Value::Array(several)) => {
            let mut names = several.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    };
    match named {
        Some("string") => FieldKind::Text,
        Some("number") => FieldKind::Number,
        Some("integer") => FieldKind::Integer,
        Some("boolean") => FieldKind::Boolean,
        _ => FieldKind::Json,
    }
}

fn shown(value: &Value, kind: &FieldKind) -> String {
    match (value, kind) {
        (Value::String(text), FieldKind::Text) => text.clone(),
        _ => value.to_string(),
    }
}

fn hint(property: &Value, kind: &FieldKind) -> String {
    let named = property.get("type").map(|kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
    let limit = |key| property.get(key).map(|limit| format!("{key} {limit}"));
    let limits = ["minimum", "maximum", "minLength", "maxLength", "pattern", "format"].into_iter().filter_map(limit);
    let json = (*kind == FieldKind::Json).then(|| "JSON".to_owned());
    named.into_iter().chain(json).chain(limits).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::form::tests::filled;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "limit": { "type": "integer", "default": 10, "maximum": 100 },
                "query": { "type": "string", "description": "what to look for" },
                "deep": { "type": ["boolean", "null"] },
                "sort": { "enum": ["up", "down", 3] },
                "filter": { "$ref": "#/$defs/filter" },
            },
            "required": ["query"],
            "$defs": { "filter": { "type": "object", "description": "which" } }
        })
    }

    #[test]
    fn every_argument_gets_the_field_that_fits_it() {
        let fields = fields(&schema(), &SubmittedFields::default());
        let told: Vec<_> =
            fields.iter().map(|field| (&*field.name, field.input(), field.is_required, &*field.value)).collect();
        assert_eq!(
            told,
            [
                ("query", "text", true, ""),
                ("limit", "whole", false, "10"),
                ("deep", "truth", false, ""),
                ("sort", "choice", false, ""),
                ("filter", "json", false, ""),
            ]
        );
        assert_eq!(fields[4].description, "which");
    }

    #[test]
    fn what_is_filled_in_becomes_arguments_of_the_right_types() {
        let sent = filled(&[
            ("p.query", "7"),
            ("p.limit", "5"),
            ("p.deep", "true"),
            ("p.sort", "\"up\""),
            ("p.filter", "{\"a\":1}"),
        ]);
        let expected = json!({ "query": "7", "limit": 5, "deep": true, "sort": "up", "filter": { "a": 1 } });
        assert_eq!(arguments(&schema(), &sent).expect("arguments"), expected);
        assert_eq!(arguments(&schema(), &filled(&[("p.query", "")])).expect("arguments"), json!({}));
        let wrong = arguments(&schema(), &filled(&[("p.filter", "{")])).expect_err("no JSON");
        assert!(wrong.starts_with("filter: "), "{wrong}");
    }

    #[test]
    fn what_cannot_be_a_number_is_left_to_the_check_of_the_tool() {
        assert_eq!(
            arguments(&schema(), &filled(&[("p.limit", "many")])).expect("arguments"),
            json!({ "limit": "many" })
        );
    }
}

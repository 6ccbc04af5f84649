//! Writes values as single-line YAML: plain names and paths unquoted, everything else as JSON.

use serde_json::Value;

/// Words that YAML does not parse as text.
const RESERVED_WORDS: [&str; 13] =
    ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", ".nan", ".inf"];

pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{}: {}", word(name), flow(value));
            format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes a text, quoted if necessary.
pub(super) fn word(text: &str) -> String {
    let rest = text.strip_prefix('$').unwrap_or(text);
    let is_plain = match rest.strip_prefix('.') {
        Some(path) => path.split('.').all(is_name),
        None => is_name(rest),
    };
    if is_plain && !RESERVED_WORDS.contains(&text.to_lowercase().as_str()) { text.to_owned() } else { quoted(text) }
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the jq path of a member below another path.
pub(super) fn below(path: &str, member: &str) -> String {
    let path = if path == "." { "" } else { path };
    if is_name(member) { format!("{path}.{member}") } else { format!("{path}.{}", quoted(member)) }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_plain_words_go_without_quotes() {
        let value = json!({ "a": "$top", "no": "yes", "$top": ".a.b", "x y": [1, ".inf", ""] });
        assert_eq!(flow(&value), r#"{ a: $top, "no": "yes", $top: .a.b, "x y": [1, ".inf", ""] }"#);
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_again(name in "\\PC{0,12}", text in "\\PC{0,20}", number: i64) {
            let value = json!({ name: [text.clone(), number, { "k": text }] });
            let read: Value = serde_saphyr::from_str(&format!("a: {}\n", flow(&value))).expect("YAML");
            prop_assert_eq!(&read["a"], &value);
        }
    }
}

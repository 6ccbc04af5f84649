//! The document is consistent in itself.

use super::*;

/// Collects all `$ref` values.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_nothing_is_left_unused() {
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').expect("inside the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (kind, parts) in document["components"].as_object().expect("components") {
        for name in parts.as_object().into_iter().flatten().map(|(name, _)| name) {
            let reference = format!("#/components/{kind}/{name}");
            assert!(kind == "securitySchemes" || found.contains(&reference.as_str()), "{reference} is unused");
        }
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let mut names: Vec<&str> = paths
        .values()
        .flat_map(|path| path.as_object().into_iter().flatten())
        .map(|(method, operation)| operation["operationId"].as_str().unwrap_or_else(|| panic!("{method}")))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

//! Decodes compact answers by the documented rules and compares them with the input, apart from empty values. If this
//! round trip holds, nothing was lost and nothing is ambiguous.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::column::{ColumnTable, is_empty};
use super::super::render::{flat, write_json};

fn text_or_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4i64).prop_map(Value::from),
        "[ab;\"\\[{ 1-]{0,4}".prop_map(Value::from),
        prop_oneof![Just("true"), Just("1"), Just("null"), Just("")].prop_map(Value::from),
    ]
}

fn rows() -> impl Strategy<Value = Vec<Value>> {
    let value = text_or_number().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::from),
        ]
    });
    let row = object(value).prop_map(Value::from).boxed();
    // Rows drawn from a few distinct ones share many values.
    proptest::collection::vec(row, 1..4).prop_flat_map(|few| {
        let places = proptest::collection::vec(0..few.len(), 2..12);
        places.prop_map(move |places| places.into_iter().map(|place| few[place].clone()).collect())
    })
}

fn object(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec(("[a-d]", inner), 0..4).prop_map(|members| members.into_iter().collect())
}

/// Returns the rows of a table, each with the values of `in_every_row`.
fn expand(table: &Value, unfold: fn(&Value) -> Value) -> Vec<Value> {
    let (rows, every) = match table {
        Value::Array(rows) => (rows.clone(), json!({})),
        _ => match &table["rows"] {
            Value::Array(rows) => (rows.clone(), table["in_every_row"].clone()),
            count => {
                let count = count.as_u64().expect("a number of rows");
                ((0..count).map(|_| json!({})).collect(), table["in_every_row"].clone())
            }
        },
    };
    rows.iter()
        .map(|row| {
            let mut row = unfold(row);
            merge(&mut row, &every);
            row
        })
        .collect()
}

fn merge(into: &mut Value, every: &Value) {
    let Some(every) = every.as_object() else { return };
    for (key, shared) in every {
        match key.strip_suffix("[]") {
            Some(list) => {
                let list = into.get_mut(list).and_then(Value::as_array_mut);
                let elements = list.into_iter().flatten().filter(|element| element.is_object());
                elements.for_each(|element| merge(element, shared));
            }
            // Values shared by elements do not apply to a row without elements.
            None if shared.is_object() => {
                let mut below = into.get(key).filter(|below| below.is_object()).cloned().unwrap_or(json!({}));
                merge(&mut below, shared);
                if !is_empty(&below) {
                    into[key] = below;
                }
            }
            None => into[key] = shared.clone(),
        }
    }
}

/// Rebuilds a row from a flat one: `a.b` is a nested member, and the columns of `a[]` form a list.
fn unfold(row: &Value) -> Value {
    let mut whole = json!({});
    let cells = row.as_object().expect("a row").iter().filter(|(_, cell)| !cell.is_null());
    for (name, cell) in cells {
        let Some((list, member)) = name.split_once("[]") else {
            put(&mut whole, name.split('.'), cell.clone());
            continue;
        };
        let place = list.split('.').fold(&mut whole, |at, step| {
            if !at.is_object() {
                *at = json!({});
            }
            &mut at[step]
        });
        if !place.is_array() {
            *place = json!([]);
        }
        let items = place.as_array_mut().expect("a list");
        for (at, element) in elements(cell).into_iter().enumerate() {
            if items.len() <= at {
                items.push(json!({}));
            }
            match (element, member.strip_prefix('.')) {
                (Some(element), None) => items[at] = element,
                (Some(element), Some(member)) => put(&mut items[at], member.split('.'), element),
                (None, _) => {}
            }
        }
    }
    whole
}

fn put<'a>(into: &mut Value, steps: impl Iterator<Item = &'a str>, value: Value) {
    let place = steps.fold(into, |at, step| {
        if !at.is_object() {
            *at = json!({});
        }
        &mut at[step]
    });
    if !place.is_object() && !place.is_array() {
        *place = value;
    }
}

/// Returns the elements of a list from its cell.
fn elements(cell: &Value) -> Vec<Option<Value>> {
    let Value::String(text) = cell else { return vec![Some(cell.clone())] };
    let (mut rest, mut found) = (text.as_str(), Vec::new());
    loop {
        let (element, after) = if rest.starts_with(['"', '[', '{']) {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let value = values.next().expect("an element").expect("JSON");
            (Some(value), &rest[values.byte_offset()..])
        } else {
            let (word, after) = rest.split_at(rest.find(';').unwrap_or(rest.len()));
            let is_alone = found.is_empty() && after.is_empty();
            let literal = serde_json::from_str(word).ok().filter(|_| !is_alone);
            ((!word.is_empty()).then(|| literal.unwrap_or_else(|| word.into())), after)
        };
        found.push(element);
        match after.strip_prefix(';') {
            Some(after) => rest = after,
            None => return found,
        }
    }
}

/// Removes empty values. A list whose elements are all empty is empty itself.
fn filled(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), filled(value)));
            Value::Object(members.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => {
            let items: Vec<Value> =
                items.iter().map(filled).map(|item| if is_empty(&item) { Value::Null } else { item }).collect();
            if items.iter().all(Value::is_null) { json!([]) } else { items.into() }
        }
        other => other.clone(),
    }
}

fn all_filled(rows: &[Value]) -> Vec<Value> {
    rows.iter().map(filled).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn there_is_a_way_back_from_json(rows in rows(), hoist in any::<bool>()) {
        let Some(table) = ColumnTable::of(&rows, hoist) else { return Ok(()) };
        let mut json = Vec::new();
        table.write_json(&mut json);
        let read: Value = serde_json::from_slice(&json).expect("JSON");
        prop_assert_eq!(all_filled(&expand(&read, Value::clone)), all_filled(&rows), "{}", read);
        let mut again = Vec::new();
        write_json(&read, &mut again);
        prop_assert_eq!(again, json);
    }

    #[test]
    fn there_is_a_way_back_from_flat_rows(rows in rows(), hoist in any::<bool>()) {
        let Some(table) = ColumnTable::of(&rows, hoist).and_then(|_| flat(&rows.clone().into(), hoist)) else { return Ok(()) };
        prop_assert_eq!(all_filled(&expand(&table, unfold)), all_filled(&rows), "{}", table);
    }
}

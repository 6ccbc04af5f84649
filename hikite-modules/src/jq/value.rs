//! Conversion between JSON values and jaq values. NaN and infinity become null, bytes become text, and non-string keys
//! become the text of their JSON.

use jaq_json::{Map as JqMap, Num, Val};
use serde_json::{Map, Number, Value};

pub(super) fn to_jq(value: &Value) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(flag) => Val::Bool(*flag),
        Value::Number(number) => Val::Num(number_to_jq(number)),
        Value::String(text) => Val::utf8_str(text.clone().into_bytes()),
        Value::Array(items) => items.iter().map(to_jq).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (Val::utf8_str(name.clone().into_bytes()), to_jq(value));
            Val::obj(members.iter().map(member).collect::<JqMap>())
        }
    }
}

pub(super) fn of_jq(value: &Val) -> Value {
    match value {
        Val::Null => Value::Null,
        Val::Bool(flag) => Value::Bool(*flag),
        Val::Num(number) => number_of_jq(number),
        Val::TStr(text) | Val::BStr(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        Val::Arr(items) => items.iter().map(of_jq).collect(),
        Val::Obj(members) => {
            Value::Object(members.iter().map(|(name, value)| (key(name), of_jq(value))).collect::<Map<_, _>>())
        }
    }
}

fn key(name: &Val) -> String {
    match of_jq(name) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn number_to_jq(number: &Number) -> Num {
    match number.as_i64().and_then(|whole| isize::try_from(whole).ok()) {
        Some(whole) => Num::Int(whole),
        None if number.is_u64() => Num::from_dec_str(&number.to_string()),
        None => Num::Float(number.as_f64().unwrap_or_default()),
    }
}

fn number_of_jq(number: &Num) -> Value {
    let of_text = |text: &str| serde_json::from_str::<Number>(text).map_or(Value::Null, Value::Number);
    match number {
        Num::Int(whole) => Value::from(*whole as i64),
        Num::BigInt(whole) => of_text(&whole.to_string()),
        Num::Float(float) if float.fract() == 0.0 && float.abs() < 1e15 => of_text(&format!("{float:.0}")),
        Num::Float(float) => Number::from_f64(*float).map_or(Value::Null, Value::Number),
        Num::Dec(text) => of_text(text),
    }
}

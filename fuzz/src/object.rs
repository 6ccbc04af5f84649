//! Relayed JSON. An object that is read and written keeps its meaning, its member order and its members' bytes.

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use serde_json::Value;

pub fn assert_properties(input: &[u8]) {
    let value = serde_json::from_slice::<Value>(input);
    let Ok(raw) = Raw::parse(Bytes::copy_from_slice(input)) else {
        assert!(value.is_err(), "valid JSON was refused");
        return;
    };
    if let Ok(value) = &value {
        assert_eq!(raw.is_object(), value.is_object());
        assert_eq!(raw.object().is_some(), value.is_object());
        assert_eq!(raw.items().map(|items| items.len()), value.as_array().map(Vec::len));
        assert_eq!(raw.text().as_deref(), value.as_str());
    }
    let Some(object) = raw.object() else { return };
    let written = object.raw();
    assert_eq!(Object::parse(&written).expect("what we write is an object"), object);
    if let Ok(value) = value {
        assert_eq!(written.value(), value);
    }
    members_can_be_changed_alone(&object);
}

fn members_can_be_changed_alone(object: &Object) {
    for (name, value) in object.iter() {
        let mut changed = object.clone();
        changed.set(name, Raw::null());
        assert_eq!(changed.len(), object.len());
        assert_eq!(changed.remove(name), Some(Raw::null()));
        assert_eq!(changed.get(name), None);
        let others = changed.iter().all(|(name, value)| object.get(name) == Some(value));
        assert!(others && changed.len() + 1 == object.len());
        assert_eq!(object.get(name), Some(value));
    }
}

//! Raw JSON that is relayed rather than parsed: values as received bytes, and objects whose members can be read, set
//! and removed while all other members keep their bytes and positions.
//!
//! It is ours because `serde_json` either parses everything or passes everything on; it does not change one member and
//! leave the rest as it came.

mod canonical;
pub(crate) mod scan;
mod weight;

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::violation::REPORTED_MAX;

pub use canonical::canonical;
pub use weight::weight;

/// One valid JSON value as bytes. Cloning only increments a reference count.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

impl Raw {
    /// Checks that `bytes` hold exactly one JSON value.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, serde_json::Error> {
        let bytes = bytes.into();
        let value: &RawValue = serde_json::from_slice(&bytes)?;
        Ok(Self::part(&bytes, value))
    }

    /// Returns a value inside `whole`, sharing the buffer if the value lies in it.
    pub fn part(whole: &Bytes, value: &RawValue) -> Self {
        let text = value.get().as_bytes();
        let start = whole.as_ptr() as usize;
        let at = text.as_ptr() as usize;
        if at >= start && at + text.len() <= start + whole.len() {
            Self(whole.slice_ref(text))
        } else {
            Self(Bytes::copy_from_slice(text))
        }
    }

    /// Wraps bytes without a check. The caller guarantees that they are valid JSON.
    pub fn trusted(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// Serializes a value. A type without a JSON form becomes `null`.
    pub fn of<T: serde::Serialize + ?Sized>(value: &T) -> Self {
        Self(serde_json::to_vec(value).map_or(Bytes::from_static(b"null"), Bytes::from))
    }

    /// Copies the value into its own buffer, so that a long-lived value does not hold the message it came in.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Builds an array from values, each with its own bytes.
    pub fn array<'a>(items: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = vec![b'['];
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(item.bytes());
        }
        out.push(b']');
        Self(out.into())
    }

    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn as_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    pub fn is_null(&self) -> bool {
        &self.0[..] == b"null"
    }

    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// Returns the text of a JSON string, `None` for any other value.
    pub fn text(&self) -> Option<String> {
        self.decode().ok()
    }

    /// Returns a non-negative integer in any spelling: `5`, `5.0` and `5e0` are equal.
    pub fn whole(&self) -> Option<u32> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held against the range before")]
        let whole = |number: f64| number as u32;
        let number = self.decode::<f64>().ok()?;
        (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then(|| whole(number))
    }

    pub fn value(&self) -> serde_json::Value {
        self.decode().unwrap_or(serde_json::Value::Null)
    }

    /// Returns the elements of an array, `None` for any other value.
    pub fn items(&self) -> Option<Vec<Self>> {
        let items: Vec<&RawValue> = self.decode().ok()?;
        Some(items.into_iter().map(|item| Self::part(&self.0, item)).collect())
    }

    /// Returns the members of an object, `None` for any other value.
    pub fn object(&self) -> Option<Object> {
        Object::parse(self).ok()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str())
    }
}

impl Default for Raw {
    fn default() -> Self {
        Self::null()
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.decode::<&RawValue>().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Reads a value as written. A part of a flattened struct is buffered by serde and has lost its bytes.
impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Bytes::from(String::from(Box::<str>::from(value)))))
    }
}

impl From<&str> for Raw {
    fn from(text: &str) -> Self {
        Self::of(text)
    }
}

impl From<String> for Raw {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<serde_json::Value> for Raw {
    fn from(value: serde_json::Value) -> Self {
        Self::of(&value)
    }
}

/// An object whose members keep their order and their bytes. The later of two members with one name wins, as in every
/// mainstream parser, and the earlier is dropped, so nobody downstream can read it differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object(Vec<(Box<str>, Raw)>);

/// Maximum number of members for which a linear search is faster than a hash table.
const FEW: usize = 16;

impl Object {
    pub fn parse(raw: &Raw) -> Result<Self, serde_json::Error> {
        let members: RawMembers<'_> = raw.decode()?;
        let mut object = Self(Vec::with_capacity(members.0.len()));
        if members.0.len() <= FEW {
            for (name, value) in members.0 {
                object.set(&name, Raw::part(&raw.0, value));
            }
            return Ok(object);
        }
        let mut places: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(members.0.len());
        for (name, value) in members.0 {
            let value = Raw::part(&raw.0, value);
            if let Some(place) = places.get(&name) {
                object.0[*place].1 = value;
            } else {
                object.0.push((name.as_ref().into(), value));
                places.insert(name, object.0.len() - 1);
            }
        }
        Ok(object)
    }

    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.text()
    }

    /// Replaces the member in its position, or appends it.
    pub fn set(&mut self, name: &str, value: impl Into<Raw>) {
        let value = value.into();
        match self.0.iter_mut().find(|(key, _)| &**key == name) {
            Some(member) => member.1 = value,
            None => self.0.push((name.into(), value)),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Raw>) -> Self {
        self.set(name, value);
        self
    }

    pub fn remove(&mut self, name: &str) -> Option<Raw> {
        let index = self.0.iter().position(|(key, _)| &**key == name)?;
        Some(self.0.remove(index).1)
    }

    /// Returns the first unknown member names, up to the maximum number of reported violations.
    pub fn unknown<'a>(&'a self, known: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.iter().map(|(name, _)| name).filter(|name| !known.contains(name)).take(REPORTED_MAX)
    }

    /// Returns the members whose names pass the filter, in their order.
    #[must_use]
    pub fn filtered(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, _)| is_wanted(name)).cloned().collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(name, out);
            out.push(b':');
            out.extend_from_slice(&value.0);
        }
        out.push(b'}');
    }

    pub fn raw(&self) -> Raw {
        let bytes = self.0.iter().map(|(name, value)| name.len() + value.0.len() + 4).sum::<usize>() + 2;
        let mut out = Vec::with_capacity(bytes);
        self.write(&mut out);
        Raw(out.into())
    }
}

/// Collects members in linear time, unlike repeated `set`. The later of two members with one name wins.
impl FromIterator<(Box<str>, Raw)> for Object {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Raw)>>(members: I) -> Self {
        let mut object = Self::default();
        let mut places: HashMap<Box<str>, usize> = HashMap::new();
        for (name, value) in members {
            match places.entry(name) {
                Entry::Occupied(place) => object.0[*place.get()].1 = value,
                Entry::Vacant(place) => {
                    object.0.push((place.key().clone(), value));
                    place.insert(object.0.len() - 1);
                }
            }
        }
        object
    }
}

impl From<Object> for Raw {
    fn from(object: Object) -> Self {
        object.raw()
    }
}

/// Appends `text` as a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(&Raw::of(text).0);
    }
}

/// Borrowed members of an object, for inspection only.
pub(crate) struct RawMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawMembers<'a> {
    /// Returns the member; the later of two with one name.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// Returns the text of a string member.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        serde_json::from_str::<BorrowedText<'a>>(self.get(name)?.get()).ok().map(|text| text.0)
    }
}

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<BorrowedText<'de>>()? {
                    members.push((name.0, map.next_value()?));
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A string, borrowed unless it contains escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Object::parse(&Raw::parse(text.to_owned()).expect("valid JSON")).expect("an object")
    }

    #[test]
    fn members_keep_their_bytes_and_order() {
        let mut tool = object(r#"{"name":"a", "x-vendor": {"n": 1.0e2,  "u":"\u00e9"} ,"z":[1, 2]}"#);
        tool.set("name", "b");
        assert_eq!(tool.raw().as_str(), r#"{"name":"b","x-vendor":{"n": 1.0e2,  "u":"\u00e9"},"z":[1, 2]}"#);
    }

    #[test]
    fn of_two_members_with_one_name_the_later_counts() {
        let twice = object(r#"{"name":"safe","name":"evil"}"#);
        assert_eq!(twice.text("name").as_deref(), Some("evil"));
        assert_eq!(twice.raw().as_str(), r#"{"name":"evil"}"#);
    }

    #[test]
    fn many_members_are_read_like_few() {
        let text = (0..100).map(|n| format!(r#""k{}":{n}"#, n % 50)).collect::<Vec<_>>().join(",");
        let many = object(&format!("{{{text}}}"));
        assert_eq!((many.len(), many.get("k7").map(|raw| raw.as_str().into_owned())), (50, Some("57".into())));
        assert_eq!(many.iter().next().map(|(name, _)| name.to_owned()).as_deref(), Some("k0"));
    }

    #[test]
    fn collected_members_are_like_members_set_one_by_one() {
        let members = (0..100).map(|n| (format!("k{}", n % 50), Raw::of(&n)));
        let set = members.clone().fold(Object::default(), |object, (name, value)| object.with(&name, value));
        let collected: Object = members.map(|(name, value)| (name.into(), value)).collect();
        assert_eq!(collected, set);
        assert_eq!(set.filtered(|name| name == "k7").raw().as_str(), r#"{"k7":57}"#);
    }

    #[test]
    fn a_part_shares_the_buffer_of_the_whole() {
        let whole = Raw::parse(r#" {"a":[1,2]} "#).expect("valid");
        let part = whole.object().and_then(|o| o.get("a").cloned()).expect("member");
        assert_eq!(part.as_str(), "[1,2]");
        assert!(whole.bytes().as_ptr_range().contains(&part.bytes().as_ptr()));
    }

    #[test]
    fn a_whole_number_may_be_spelled_in_any_way_but_must_be_whole() {
        for (text, expected) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5e0", Some(5)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("5.5", None),
            ("-1", None),
            ("\"5\"", None),
            ("null", None),
            ("1e99", None),
        ] {
            assert_eq!(Raw::parse(text).expect("valid").whole(), expected, "{text}");
        }
    }

    #[test]
    fn depth_does_not_overflow_the_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Raw::parse(deep).is_ok());
    }
}

//! Parses arguments into a tree, no deeper than the validators can recurse, and detects duplicate members.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::json::Raw;
use crate::json::scan::{Scanner, text_of};

/// Maximum depth of arguments; validators recurse, and deeper values could overflow the stack.
const DEPTH_MAX: usize = 64;

pub(super) struct ParsedArguments {
    pub(super) raw: Raw,
    pub(super) value: Value,
    /// `true` if `raw` differs from what arrived: the earlier of two members with one name is removed, because only the
    /// later one is checked.
    pub(super) changed: bool,
}

const TOO_DEEP: &str = "the arguments are nested too deeply";

/// Parses arguments. The error message is safe to show.
pub(super) fn read(raw: Raw) -> Result<ParsedArguments, &'static str> {
    read_at(raw, 0)
}

/// Parses a value that will be placed at `depth` in the arguments.
pub(super) fn read_at(raw: Raw, depth: usize) -> Result<ParsedArguments, &'static str> {
    let (has_duplicates, deep) = (Cell::new(false), Cell::new(false));
    let seed =
        ArgumentsVisitor { depth: DEPTH_MAX.saturating_sub(depth), has_duplicates: &has_duplicates, deep: &deep };
    match seed.deserialize(&mut serde_json::Deserializer::from_slice(raw.bytes())) {
        Ok(value) if has_duplicates.get() => {
            Ok(ParsedArguments { raw: without_duplicates(&raw), value, changed: true })
        }
        Ok(value) => Ok(ParsedArguments { raw, value, changed: false }),
        Err(_) if deep.get() => Err(TOO_DEEP),
        Err(_) => Err("the arguments contain a number or a string that cannot be read"),
    }
}

/// Checks the depth of a value that is already parsed.
pub(super) fn within_depth(value: &Value) -> Result<(), &'static str> {
    fn nests(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| nests(item, left - 1)),
            Value::Object(members) => left > 0 && members.values().all(|member| nests(member, left - 1)),
            _ => true,
        }
    }
    if nests(value, DEPTH_MAX) { Ok(()) } else { Err(TOO_DEEP) }
}

#[derive(Clone, Copy)]
struct ArgumentsVisitor<'a> {
    depth: usize,
    has_duplicates: &'a Cell<bool>,
    deep: &'a Cell<bool>,
}

impl ArgumentsVisitor<'_> {
    fn below<E: Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => {
                self.deep.set(true);
                Err(E::custom("too deep"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for ArgumentsVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ArgumentsVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.insert(name, members.next_value_seed(below)?).is_some() {
                self.has_duplicates.set(true);
            }
        }
        Ok(Value::Object(object))
    }
}

/// Returns the document without members that a later duplicate replaces.
fn without_duplicates(raw: &Raw) -> Raw {
    let bytes = raw.bytes();
    let mut cuts = Vec::new();
    find_replaced(&mut Scanner::new(bytes), &mut cuts);
    // Cuts inside a removed member were found before the member itself.
    cuts.sort_unstable_by_key(|cut: &Range<usize>| (cut.start, Reverse(cut.end)));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for cut in cuts {
        if cut.start >= at {
            out.extend_from_slice(&bytes[at..cut.start]);
            at = cut.end;
        }
    }
    out.extend_from_slice(&bytes[at..]);
    Raw::trusted(out)
}

/// Collects the byte ranges of replaced members, each with its trailing comma: a later member always follows.
fn find_replaced(scanner: &mut Scanner<'_>, cuts: &mut Vec<Range<usize>>) {
    match scanner.peek() {
        Some(b'{') => {
            scanner.take(1);
            let (mut starts, mut latest) = (Vec::new(), HashMap::new());
            while !scanner.at_end(b'}') {
                scanner.skip_blanks();
                starts.push(scanner.position());
                if let Some(name) = text_of(scanner.string())
                    && let Some(earlier) = latest.insert(name, starts.len() - 1)
                {
                    replaced(earlier, &starts, cuts);
                }
                scanner.colon();
                find_replaced(scanner, cuts);
            }
        }
        Some(b'[') => {
            scanner.take(1);
            while !scanner.at_end(b']') {
                find_replaced(scanner, cuts);
            }
        }
        _ => drop(scanner.value()),
    }
}

fn replaced(member: usize, starts: &[usize], cuts: &mut Vec<Range<usize>>) {
    if let [start, next, ..] = starts[member..] {
        cuts.push(start..next);
    }
}

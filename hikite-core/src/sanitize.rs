//! Removes characters that people cannot see but a model reads: controls, zero-width characters, bidirectional
//! overrides, tags. Characters that people write with (emoji, ideographic variants, Persian joiners) stay. Clean text
//! keeps its bytes; nothing is escaped or replaced.

mod character;

use crate::json::{Object, Raw, write_string};
use crate::listing::{ListItem, ListKind, Listing, SanitizedItem};

use character::CharacterFilter;
pub(crate) use character::is_hidden;

/// Returns the text without hidden characters and the number removed; `None` if the text is clean.
pub fn text(text: &str) -> Option<(String, usize)> {
    let mut filter = CharacterFilter::default();
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if filter.is_kept(character, characters.peek().copied()) {
            out.push(character);
        }
    }
    (filter.removed > 0).then_some((out, filter.removed))
}

/// Sanitizes every string in a value, member names included; `None` if the value is clean. Untouched parts keep their
/// bytes.
pub fn value(raw: &Raw) -> Option<(Raw, usize)> {
    let bytes = raw.bytes();
    if !may_have_hidden(bytes) {
        return None;
    }
    let (mut out, mut removed, mut done) = (Vec::new(), 0, 0);
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|byte| *byte == b'"').map(|found| at + found) {
        at = end_of_string(bytes, start);
        let literal = &bytes[start..at];
        let Some((clean, count)) = may_have_hidden(literal).then(|| string(literal)).flatten() else {
            continue;
        };
        out.extend_from_slice(&bytes[done..start]);
        write_string(&clean, &mut out);
        done = at;
        removed += count;
    }
    if removed == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[done..]);
    Some((Raw::trusted(out), removed))
}

/// Sanitizes everything that a source lists and reports about itself, and records the changes in the listing. Items
/// with hidden characters in their names are dropped, because they could not be called under another name.
pub fn listing(listing: &mut Listing) {
    let mut found = Vec::new();
    let mut note = |kind: &'static str, name: &str, removed: usize, left_out: bool| {
        found.push(SanitizedItem { kind: kind.into(), name: name.into(), removed, left_out });
    };
    for kind in ListKind::ALL {
        listing.of_mut(kind).retain_mut(|item: &mut ListItem| {
            if let Some((name, removed)) = text(&item.name) {
                note(kind.noun(), &name, removed, true);
                return false;
            }
            if let Some((raw, removed)) = value(&item.raw) {
                note(kind.noun(), &item.name, removed, false);
                item.raw = raw;
            }
            true
        });
    }
    for (what, object) in [("server", &mut listing.info), ("capabilities", &mut listing.capabilities)] {
        if let Some((raw, removed)) = value(&object.raw()) {
            note(what, "", removed, false);
            *object = Object::parse(&raw).unwrap_or_default();
        }
    }
    if let Some((clean, removed)) = listing.instructions.as_deref().and_then(text) {
        note("instructions", "", removed, false);
        listing.instructions = Some(clean);
    }
    listing.sanitized = found;
}

/// Returns `true` if these bytes of JSON can contain hidden characters: there is a non-ASCII byte, a DEL, or an escape
/// that may stand for one.
fn may_have_hidden(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        0x7f.. => true,
        b'\\' => matches!(bytes.get(at + 1), Some(b'u' | b'b' | b'f')),
        _ => false,
    })
}

/// Returns the offset after the closing quote of the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Sanitizes a quoted JSON string. Lone surrogates are removed too, since parsers disagree about them.
fn string(literal: &[u8]) -> Option<(String, usize)> {
    let (decoded, lone_surrogates) = match serde_json::from_slice::<String>(literal) {
        Ok(decoded) => (decoded, 0),
        Err(_) => without_lone_surrogates(literal)?,
    };
    match text(&decoded) {
        Some((clean, removed)) => Some((clean, removed + lone_surrogates)),
        None => (lone_surrogates > 0).then_some((decoded, lone_surrogates)),
    }
}

fn without_lone_surrogates(literal: &[u8]) -> Option<(String, usize)> {
    let (mut out, mut lone_surrogates, mut at) = (Vec::with_capacity(literal.len()), 0, 0);
    while at < literal.len() {
        let length = match (literal[at], literal.get(at + 1)) {
            (b'\\', Some(b'u')) => match (surrogate_at(literal, at), surrogate_at(literal, at + 6)) {
                (Some(Surrogate::High), Some(Surrogate::Low)) => 12,
                (Some(_), _) => {
                    lone_surrogates += 1;
                    at += 6;
                    continue;
                }
                (None, _) => 6,
            },
            (b'\\', _) => 2,
            _ => 1,
        };
        out.extend_from_slice(literal.get(at..at + length)?);
        at += length;
    }
    Some((serde_json::from_slice(&out).ok()?, lone_surrogates))
}

enum Surrogate {
    High,
    Low,
}

/// Returns which surrogate the escape at this offset is, if any.
fn surrogate_at(literal: &[u8], at: usize) -> Option<Surrogate> {
    let escape = literal.get(at..at + 6)?.strip_prefix(br"\u")?;
    match u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

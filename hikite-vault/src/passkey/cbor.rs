//! Subset of CBOR (RFC 8949) that authenticators use: definite lengths only, with limits on depth and number of values.
//! Trailing bytes and duplicate map keys are rejected.
//!
//! It is ours because `ciborium`, on which `coset` is built, accepts indefinite lengths and duplicate keys, has no
//! limit on the number of values, and copies what it reads.

/// Deepest nesting of an authenticator's response.
const DEPTH_MAX: usize = 8;
/// Most values of a response.
const VALUES_MAX: usize = 512;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CborValue<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    List(Vec<CborValue<'a>>),
    Map(Vec<(CborValue<'a>, CborValue<'a>)>),
    /// A value that is never read: `true`, `null`, a float.
    Other,
}

impl<'a> CborValue<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.find(|key| matches!(key, CborValue::Text(text) if *text == name))
    }

    pub(crate) fn at(&self, number: i64) -> Option<&Self> {
        self.find(|key| *key == CborValue::Integer(number))
    }

    fn find(&self, is: impl Fn(&Self) -> bool) -> Option<&Self> {
        let Self::Map(members) = self else { return None };
        members.iter().find(|(key, _)| is(key)).map(|(_, value)| value)
    }

    pub(crate) fn bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }
}

/// Parses bytes that are exactly one value.
pub(crate) fn read_all(bytes: &[u8]) -> Option<CborValue<'_>> {
    let (value, rest) = read(bytes)?;
    rest.is_empty().then_some(value)
}

/// Parses the value at the start of the bytes, and returns the rest.
pub(crate) fn read(bytes: &[u8]) -> Option<(CborValue<'_>, &[u8])> {
    let mut reader = CborReader { rest: bytes, left: VALUES_MAX };
    let value = reader.value(DEPTH_MAX)?;
    Some((value, reader.rest))
}

struct CborReader<'a> {
    rest: &'a [u8],
    /// Number of values that may still follow.
    left: usize,
}

impl<'a> CborReader<'a> {
    fn value(&mut self, depth: usize) -> Option<CborValue<'a>> {
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let first = *self.take(1)?.first()?;
        let (major, minor) = (first >> 5, first & 0x1f);
        // Floats and simple values: the argument is the value itself.
        let argument = self.argument(minor)?;
        Some(match major {
            0 => CborValue::Integer(i64::try_from(argument).ok()?),
            1 => CborValue::Integer(-1 - i64::try_from(argument).ok()?),
            2 => CborValue::Bytes(self.take(argument)?),
            3 => CborValue::Text(std::str::from_utf8(self.take(argument)?).ok()?),
            4 => {
                let count = self.count(argument)?;
                CborValue::List((0..count).map(|_| self.value(depth)).collect::<Option<_>>()?)
            }
            5 => self.map(argument, depth)?,
            6 => self.value(depth)?,
            _ => CborValue::Other,
        })
    }

    fn map(&mut self, argument: u64, depth: usize) -> Option<CborValue<'a>> {
        let count = self.count(argument)?;
        let mut members: Vec<(CborValue<'a>, CborValue<'a>)> = Vec::with_capacity(count);
        for _ in 0..count {
            let (key, value) = (self.value(depth)?, self.value(depth)?);
            if members.iter().any(|(known, _)| *known == key) {
                return None;
            }
            members.push((key, value));
        }
        Some(CborValue::Map(members))
    }

    /// Checks an element count. Each element takes at least one byte, so the allocation is bounded by the input.
    fn count(&self, argument: u64) -> Option<usize> {
        usize::try_from(argument).ok().filter(|count| *count <= self.left && *count <= self.rest.len())
    }

    fn argument(&mut self, minor: u8) -> Option<u64> {
        let wide = match minor {
            0..=23 => return Some(u64::from(minor)),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            // Indefinite lengths, which authenticators must not use.
            _ => return None,
        };
        let bytes = self.take(wide)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok()?;
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (bytes, expected) in [
            (&[0x00][..], CborValue::Integer(0)),
            (&[0x18, 0x64], CborValue::Integer(100)),
            (&[0x1a, 0x00, 0x0f, 0x42, 0x40], CborValue::Integer(1_000_000)),
            (&[0x38, 0x63], CborValue::Integer(-100)),
            (&[0x44, 1, 2, 3, 4], CborValue::Bytes(&[1, 2, 3, 4])),
            (&[0x64, 0x49, 0x45, 0x54, 0x46], CborValue::Text("IETF")),
            (&[0x82, 0x01, 0x20], CborValue::List(vec![CborValue::Integer(1), CborValue::Integer(-1)])),
            (&[0xa1, 0x01, 0x02], CborValue::Map(vec![(CborValue::Integer(1), CborValue::Integer(2))])),
            (&[0xf5], CborValue::Other),
            (&[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a], CborValue::Other),
        ] {
            assert_eq!(read_all(bytes), Some(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn what_is_not_whole_or_not_bounded_is_refused() {
        let deep = [0x81; 64];
        let many = [&[0x99, 0x03, 0xff][..], &[0x00; 0x3ff]].concat();
        for bytes in [
            &[][..],
            &[0x18],
            &[0x44, 1, 2, 3],
            &[0x62, 0xff, 0xfe],
            &[0x5f, 0x41, 0x00, 0xff],
            &[0x9f, 0xff],
            &[0xa2, 0x01, 0x02, 0x01, 0x03],
            &[0xa1, 0x01],
            &[0x00, 0x00],
            &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1c],
            &deep,
            &many,
        ] {
            assert_eq!(read_all(bytes), None, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
            if let Some((_, rest)) = read(&bytes) {
                prop_assert!(rest.len() < bytes.len());
            }
        }
    }
}

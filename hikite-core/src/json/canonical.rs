//! Canonical JSON: members sorted by name, no whitespace, one spelling for each number and string. Equal values have
//! equal bytes, so they can be compared, hashed and used as keys.

use super::scan::Scanner;
use super::{Raw, write_string};

/// Maximum depth of sorting; deeper values keep their spelling, since sorting costs more with depth.
const DEPTH_MAX: usize = 128;

/// Maximum trailing zeros of an integer, as many as 64 bits need; numbers with more use an exponent.
const ZEROS_MAX: usize = 20;

/// Returns the canonical bytes. The later of two members with one name wins. Numbers are compared exactly: 1, 1.0 and
/// 1e0 are equal, but two numbers that only a double confuses are not.
pub fn canonical(raw: &Raw) -> Vec<u8> {
    let scanner = Scanner::new(raw.bytes());
    let mut writer = CanonicalWriter { scanner, out: Vec::with_capacity(raw.bytes().len()) };
    writer.value(0);
    writer.out
}

struct CanonicalWriter<'a> {
    scanner: Scanner<'a>,
    out: Vec<u8>,
}

impl CanonicalWriter<'_> {
    fn value(&mut self, depth: usize) {
        match self.scanner.peek() {
            Some(b'{' | b'[') if depth == DEPTH_MAX => {
                let nested = self.scanner.nested();
                self.out.extend_from_slice(nested);
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let string = self.scanner.string();
                write_normalized(string, &mut self.out);
            }
            _ => {
                let plain = self.scanner.plain();
                match Decimal::read(plain) {
                    Some(number) => number.write(&mut self.out),
                    None => self.out.extend_from_slice(plain),
                }
            }
        }
    }

    fn array(&mut self, depth: usize) {
        self.scanner.take(1);
        self.out.push(b'[');
        let mut first = true;
        while !self.scanner.at_end(b']') {
            if !first {
                self.out.push(b',');
            }
            first = false;
            self.value(depth + 1);
        }
        self.out.push(b']');
    }

    /// Writes members as they come and sorts them afterwards if needed, so nested values are not copied again for every
    /// enclosing object.
    fn object(&mut self, depth: usize) {
        self.scanner.take(1);
        let start = self.out.len();
        self.out.push(b'{');
        let mut members: Vec<MemberSpan> = Vec::new();
        let mut sorted_members = true;
        while !self.scanner.at_end(b'}') {
            if !members.is_empty() {
                self.out.push(b',');
            }
            let from = self.out.len();
            let name = self.scanner.string();
            write_normalized(name, &mut self.out);
            let name_end = self.out.len();
            let earlier = members.last().map(|member| &self.out[member.from..member.name_end]);
            sorted_members &= earlier.is_none_or(|earlier| earlier < &self.out[from..name_end]);
            self.out.push(b':');
            self.scanner.colon();
            self.value(depth + 1);
            members.push(MemberSpan { from, name_end, end: self.out.len() });
        }
        if sorted_members {
            self.out.push(b'}');
            return;
        }
        let sorted = self.sorted_members(members);
        self.out.truncate(start);
        self.out.extend_from_slice(&sorted);
    }

    fn sorted_members(&self, mut members: Vec<MemberSpan>) -> Vec<u8> {
        let name = |member: &MemberSpan| &self.out[member.from..member.name_end];
        members.sort_by(|a, b| name(a).cmp(name(b)));
        let mut sorted = vec![b'{'];
        for (at, member) in members.iter().enumerate() {
            if members.get(at + 1).is_some_and(|later| name(later) == name(member)) {
                continue;
            }
            if sorted.len() > 1 {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&self.out[member.from..member.end]);
        }
        sorted.push(b'}');
        sorted
    }
}

/// Byte offsets of a written member.
struct MemberSpan {
    from: usize,
    name_end: usize,
    end: usize,
}

/// Writes a string with normalized escapes. Lone surrogates stay as they are.
fn write_normalized(string: &[u8], out: &mut Vec<u8>) {
    if string.contains(&b'\\')
        && let Ok(text) = serde_json::from_slice::<String>(string)
    {
        write_string(&text, out);
    } else {
        out.extend_from_slice(string);
    }
}

/// A decimal number: digits without leading and trailing zeros, times a power of ten.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Parses a number; `None` if the text is not one or its exponent is out of range.
    fn read(text: &'a [u8]) -> Option<Self> {
        let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
        if !text.first()?.is_ascii_digit() {
            return None;
        }
        let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let point = mantissa.iter().position(|byte| *byte == b'.');
        let (whole, fraction) = point.map_or((mantissa, &[][..]), |point| (&mantissa[..point], &mantissa[point + 1..]));
        Some(Self { negative, whole, fraction, exponent: exponent.into() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let digits = self.whole.iter().chain(self.fraction);
        let length = self.whole.len() + self.fraction.len();
        let leading = digits.clone().take_while(|digit| **digit == b'0').count();
        if leading == length {
            out.push(b'0');
            return;
        }
        let trailing = digits.clone().rev().take_while(|digit| **digit == b'0').count();
        if self.negative {
            out.push(b'-');
        }
        out.extend(digits.take(length - trailing).skip(leading));
        let dropped = i64::try_from(trailing).unwrap_or(i64::MAX);
        let behind = i64::try_from(self.fraction.len()).unwrap_or(i64::MAX);
        let exponent = self.exponent.saturating_sub(behind).saturating_add(dropped);
        match usize::try_from(exponent) {
            Ok(zeros) if zeros <= ZEROS_MAX => out.resize(out.len() + zeros, b'0'),
            _ => {
                out.push(b'e');
                out.extend_from_slice(exponent.to_string().as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> String {
        let raw = Raw::parse(text.to_owned()).expect("valid JSON");
        String::from_utf8(canonical(&raw)).expect("UTF-8")
    }

    #[track_caller]
    fn same(texts: &[&str]) {
        for text in texts {
            assert_eq!(of(text), of(texts[0]), "{text}");
        }
    }

    #[test]
    fn what_means_the_same_is_spelled_the_same() {
        same(&["1", "1.0", "1e0", "10E-1", "0.1e+1", " 1.000 "]);
        same(&["0", "-0", "0.0", "-0e5"]);
        same(&["1200", "12e2", "1.2e3", "1200.0"]);
        same(&[r#""A/é""#, r#""\u0041\/\u00e9""#, r#""\u0041/é""#]);
        same(&[r#"{"a":1,"b":[1,{}]}"#, r#"{ "b" : [ 1.0 , { } ] , "\u0061" : 1 }"#]);
        same(&[r#"{"a":2}"#, r#"{"a":1,"a":2}"#]);
        same(&["[]", " [ ] "]);
    }

    #[test]
    fn what_differs_stays_different() {
        let texts = [
            "1",
            "-1",
            "10",
            "0.1",
            "12345678901234567890123",
            "12345678901234567890124",
            "1e400",
            "1e99999999999999999999",
            "null",
            "true",
            r#""1""#,
            r#""\ud800""#,
            r#""é""#,
            r#""e\u0301""#,
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "{}",
            r#"{"a":null}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
        ];
        let all: std::collections::HashSet<String> = texts.iter().map(|text| of(text)).collect();
        assert_eq!(all.len(), texts.len());
    }

    #[test]
    fn depth_neither_overflows_the_stack_nor_is_lost() {
        let deep = |core: &str| format!("{}{core}{}", r#"{"b":["#.repeat(50_000), "]}".repeat(50_000));
        assert_ne!(of(&deep("1")), of(&deep("2")));
        assert_eq!(of(&of(&deep("1"))), of(&deep("1")));
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_filter("JSON has no others", |f| f.is_finite()).prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    /// Returns a different spelling of the same value.
    fn spelled_otherwise(value: &serde_json::Value) -> String {
        let text = |text: &str| {
            let escaped: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            format!("\"{}\"", escaped.concat())
        };
        match value {
            serde_json::Value::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .rev()
                    .map(|(name, value)| format!("{} :\n{}", text(name), spelled_otherwise(value)))
                    .collect();
                format!("{{ {} }}", members.join(" , "))
            }
            serde_json::Value::Array(items) => {
                format!("[\t{}\r]", items.iter().map(spelled_otherwise).collect::<Vec<_>>().join(" ,"))
            }
            serde_json::Value::String(string) => text(string),
            serde_json::Value::Number(number) if number.is_f64() => format!("{number}00e0").replace("e0", "E+00"),
            plain => plain.to_string(),
        }
    }

    proptest! {
        #[test]
        fn canonical_is_idempotent_and_keeps_the_meaning(value in value()) {
            let once = of(&value.to_string());
            prop_assert_eq!(&of(&once), &once);
            let read: serde_json::Value = serde_json::from_str(&once).expect("JSON");
            prop_assert_eq!(canonical(&Raw::of(&read)), once.into_bytes());
        }

        #[test]
        fn canonical_does_not_depend_on_spelling(value in value()) {
            let other = spelled_otherwise(&value);
            prop_assume!(serde_json::from_str::<serde_json::Value>(&other).is_ok());
            prop_assert_eq!(of(&other), of(&value.to_string()));
        }
    }
}

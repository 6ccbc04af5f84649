//! Strings and keys: bare if they can be read back, quoted otherwise. Only ASCII syntax characters are inspected, so
//! combining characters are never separated.

/// Bytes allowed in unquoted keys; the first must not be a digit or a dot.
const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        byte += 1;
    }
    table
};

pub(super) fn push(text: &str, delimiter: u8, out: &mut String) {
    if is_bare(text, delimiter) {
        out.push_str(text);
    } else {
        push_quoted(text, out);
    }
}

pub(super) fn push_key(name: &str, out: &mut String) {
    if is_bare_key(name) {
        out.push_str(name);
    } else {
        push_quoted(name, out);
    }
}

pub(super) fn push_quoted(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(at) = position(rest.as_bytes(), is_escaped) {
        out.push_str(&rest[..at]);
        push_escape(rest.as_bytes()[at], out);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn push_escape(byte: u8, out: &mut String) {
    out.push('\\');
    match byte {
        b'\n' => out.push('n'),
        b'\r' => out.push('r'),
        b'\t' => out.push('t'),
        b'"' | b'\\' => out.push(byte.into()),
        control => {
            out.push_str(if control < 0x10 { "u000" } else { "u001" });
            out.push(char::from_digit(u32::from(control & 0xf), 16).unwrap_or('0'));
        }
    }
}

fn is_bare(text: &str, delimiter: u8) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    if matches!(first, b' ' | b'-' | b'#') || *last == b' ' || has_mark(bytes, delimiter) {
        return false;
    }
    match first {
        b'0'..=b'9' | b'+' => !is_like_a_number(bytes),
        b't' | b'f' | b'n' => !matches!(text, "true" | "false" | "null"),
        _ => true,
    }
}

fn has_mark(bytes: &[u8], delimiter: u8) -> bool {
    any(bytes, |byte| is_mark(byte, delimiter))
}

/// Tests blocks without early exit, which compile to a few instructions each. The last block overlaps.
#[inline]
fn any(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    if let Some(last) = bytes.last_chunk::<16>() {
        return bytes.as_chunks::<16>().0.iter().any(|block| in_block(block, &is)) || in_block(last, &is);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return in_block(first, &is) || in_block(last, &is);
    }
    bytes.iter().any(|byte| is(*byte))
}

#[inline]
fn position(bytes: &[u8], is: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, _) = bytes.as_chunks::<16>();
    let clean = blocks.iter().take_while(|block| !in_block(block, &is)).count() * 16;
    bytes[clean..].iter().position(|byte| is(*byte)).map(|at| clean + at)
}

#[inline]
fn in_block<const N: usize>(block: &[u8; N], is: impl Fn(u8) -> bool) -> bool {
    block.iter().fold(false, |found, byte| found | is(*byte))
}

#[inline]
fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

#[inline]
fn is_mark(byte: u8, delimiter: u8) -> bool {
    byte < b' '
        || byte == b'"'
        || byte == b':'
        || byte.wrapping_sub(b'[') <= b']' - b'['
        || byte == b'{'
        || byte == b'}'
        || byte == delimiter
}

/// Returns `true` for number-like text, including `+1` and `05`, which JSON rejects but many parsers accept.
fn is_like_a_number(bytes: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = bytes.strip_prefix(b"+").unwrap_or(bytes);
    let whole = digits(rest);
    let mut rest = &rest[whole..];
    if whole == 0 {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent = exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

fn is_bare_key(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_start = |byte: &u8| !byte.is_ascii_digit() && *byte != b'.';
    bytes.first().is_some_and(is_start) && bytes.iter().all(|byte| IN_NAMES[usize::from(*byte)])
}

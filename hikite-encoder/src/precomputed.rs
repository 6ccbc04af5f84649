//! Precomputed vectors of well-known tools, which make semantic search available immediately. `cargo xtask vectors`
//! writes the file: all content hashes in order, then their vectors in the same order. Lookups search it in place.

use hikite_core::search::encoder::Vector;

use crate::DIMENSION;

static BYTES: &[u8] = include_bytes!("../model/ready.bin");

/// First 16 bytes of the SHA-256 of a text, enough to tell all texts apart.
pub(crate) type ContentHash = [u8; 16];

/// Parses the hexadecimal form of a full hash.
pub(crate) fn content(hexadecimal: &str) -> Option<ContentHash> {
    let digits = hexadecimal.as_bytes().get(..2 * size_of::<ContentHash>())?.as_chunks::<2>().0;
    let mut content = ContentHash::default();
    for (byte, pair) in content.iter_mut().zip(digits) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(content)
}

pub(crate) fn find(hexadecimal: &str) -> Option<Vector> {
    let (contents, vectors) = parts(BYTES);
    let at = contents.binary_search(&content(hexadecimal)?).ok()?;
    Some(Vector::from_bytes(vectors.get(at)?.iter().map(|byte| byte.cast_signed()).collect()))
}

pub(crate) fn parts(bytes: &[u8]) -> (&[ContentHash], &[[u8; DIMENSION]]) {
    let count = bytes.len() / (size_of::<ContentHash>() + DIMENSION);
    let (contents, vectors) = bytes.split_at(count * size_of::<ContentHash>());
    (contents.as_chunks().0, vectors.as_chunks().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_hash_is_not_found() {
        for text in ["", "00", "zz000000000000000000000000000000", "é", &"+1".repeat(32), &"0".repeat(64)] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}

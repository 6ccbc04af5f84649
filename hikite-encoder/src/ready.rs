//! Vectors that were made beforehand, so that well-known tools are found by their meaning from the first moment on.
//! `cargo xtask vectors` writes the file; it is searched where it lies.

use std::collections::BTreeMap;

use hikite_core::search::encoder::Vector;

use crate::DIMENSION;

static BYTES: &[u8] = include_bytes!("../model/ready.bin");

/// The beginning of the SHA-256 of a text: enough to tell all texts apart.
pub type Content = [u8; 16];

/// All contents in order, then their vectors in the same order.
pub fn write(vectors: &BTreeMap<Content, Vector>) -> Vec<u8> {
    let contents = vectors.keys().flatten().copied();
    contents
        .chain(vectors.values().flat_map(|vector| vector.bytes().iter().map(|byte| byte.cast_unsigned())))
        .collect()
}

/// From the hexadecimal form of the whole hash.
pub fn content(hexadecimal: &str) -> Option<Content> {
    let digits = hexadecimal.as_bytes().get(..2 * size_of::<Content>())?.as_chunks::<2>().0;
    let mut content = Content::default();
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

fn parts(bytes: &[u8]) -> (&[Content], &[[u8; DIMENSION]]) {
    let count = bytes.len() / (size_of::<Content>() + DIMENSION);
    let (contents, vectors) = bytes.split_at(count * size_of::<Content>());
    (contents.as_chunks().0, vectors.as_chunks().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_by_its_content() {
        let vector = |value: f32| {
            Vector::of(&(0..DIMENSION).map(|at| if at == 7 { value } else { 1.0 }).collect::<Vec<_>>())
        };
        let vectors =
            BTreeMap::from([([3; 16], vector(3.0)), ([1; 16], vector(1.0)), ([2; 16], vector(2.0))]);
        let bytes = write(&vectors);
        let (contents, numbers) = parts(&bytes);
        assert_eq!(contents, [[1; 16], [2; 16], [3; 16]]);
        assert_eq!(numbers[2][7], 127);
    }

    #[test]
    fn what_is_no_hash_is_not_found() {
        for text in ["", "00", "zz000000000000000000000000000000", "é", &"+1".repeat(32), &"0".repeat(64)] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}

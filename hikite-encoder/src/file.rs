//! Layout of the embedded weight file, which `model/build.py` writes.

static BYTES: &[u8] = include_bytes!("../model/encoder.bin");

const MAGIC: &[u8] = b"hikite encoder 2";
const PARTS: usize = 6;

/// Sections of the weight file, in file order.
#[derive(Debug)]
pub(crate) struct ModelFile {
    /// Word pieces, sorted; the row of a piece is its place in this list.
    pub(crate) words: &'static [u8],
    /// Japanese pieces, sorted; their rows follow those of the word pieces.
    pub(crate) japanese: &'static [u8],
    /// Logarithm of the probability of each Japanese piece.
    pub(crate) scores: &'static [u8],
    /// Scale of each row of the embedding table.
    pub(crate) scales: &'static [u8],
    pub(crate) table: &'static [u8],
    pub(crate) network: &'static [u8],
}

impl ModelFile {
    pub(crate) fn read() -> Self {
        let (magic, rest) = BYTES.split_at(MAGIC.len());
        assert_eq!(magic, MAGIC, "encoder.bin is of another form than this program reads");
        let (lengths, mut rest) = rest.split_at(PARTS * 4);
        let mut part = |at: usize| {
            let (part, after) = rest.split_at(word(lengths, at) as usize);
            rest = after;
            part
        };
        Self { words: part(0), japanese: part(1), scores: part(2), scales: part(3), table: part(4), network: part(5) }
    }
}

/// Returns the 32-bit word at an index counted in words.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes.as_chunks().0[at])
}

/// Returns the 32-bit float at an index counted in floats.
pub(crate) fn float(bytes: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(bytes.as_chunks().0[at])
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_weights_are_those_that_were_pinned() {
        let hash = format!("{:x}", Sha256::digest(BYTES));
        let readme = include_str!("../model/README.md");
        assert!(
            readme.contains(&format!("`{hash}`")),
            "encoder.bin has the hash {hash}; model/README.md names another"
        );
        assert!(crate::MODEL.ends_with(&hash[..8]), "the model's name must end in {}", &hash[..8]);
        assert!(BYTES.len() < 25_000_000);
    }

    #[test]
    fn the_parts_fill_the_file() {
        let file = ModelFile::read();
        let last = file.network.as_ptr_range().end;
        assert_eq!(last, BYTES.as_ptr_range().end);
    }
}

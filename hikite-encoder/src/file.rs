//! Layout of the embedded weight file, which `model/build.py` writes.

static BYTES: &[u8] = include_bytes!("../model/encoder.bin");

const MAGIC: &[u8] = b"hikite encoder 1";

/// Sections of the weight file, in file order.
#[derive(Debug)]
pub(crate) struct ModelFile {
    /// Trie of the normalizer, and the replacement texts that its values point to.
    pub(crate) normaliser: &'static [u8],
    pub(crate) replacements: &'static [u8],
    /// Trie of the pieces; its values are rows of the embedding table.
    pub(crate) pieces: &'static [u8],
    /// Negative log probability of the piece of each row.
    pub(crate) scores: &'static [u8],
    /// Lowest level and shard of each row.
    pub(crate) rows: &'static [u8],
    /// Dequantization parameters of each shard.
    pub(crate) shards: &'static [u8],
    /// Number of rows of each bit width.
    pub(crate) widths: &'static [u8],
    pub(crate) table: &'static [u8],
    pub(crate) network: &'static [u8],
    pub(crate) adapter: &'static [u8],
}

impl ModelFile {
    pub(crate) fn read() -> Self {
        let (magic, rest) = BYTES.split_at(MAGIC.len());
        assert_eq!(magic, MAGIC, "encoder.bin is of another form than this program reads");
        let (lengths, mut rest) = rest.split_at(10 * 4);
        let mut part = |at: usize| {
            let (part, after) = rest.split_at(word(lengths, at) as usize);
            rest = after;
            part
        };
        Self {
            normaliser: part(0),
            replacements: part(1),
            pieces: part(2),
            scores: part(3),
            rows: part(4),
            shards: part(5),
            widths: part(6),
            table: part(7),
            network: part(8),
            adapter: part(9),
        }
    }
}

/// Returns the 32-bit word at an index counted in words.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes.as_chunks().0[at])
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
        assert!(BYTES.len() < 32_000_000);
    }

    #[test]
    fn the_parts_fill_the_file() {
        let file = ModelFile::read();
        let last = file.adapter.as_ptr_range().end;
        assert_eq!(last, BYTES.as_ptr_range().end);
    }
}

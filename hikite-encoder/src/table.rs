//! Embeddings of single pieces: 512 numbers each, quantized to a few bits per number and read in place.
//!
//! The published table has 64 levels, and a row uses a few adjacent ones. Each row is stored as its lowest level and
//! the offsets from it, in as many bits as the row needs. Rows of equal width are adjacent, the widest first.

use crate::DIMENSION;
use crate::file::{ModelFile, word};

#[derive(Debug)]
pub(crate) struct EmbeddingTable {
    /// Lowest level and shard of each row.
    rows: &'static [[u8; 2]],
    shards: Vec<QuantizationShard>,
    blocks: Vec<RowBlock>,
}

/// Dequantization parameters of the rows of one shard.
#[derive(Debug)]
struct QuantizationShard {
    lowest: f32,
    step: f32,
}

/// Rows of one bit width.
#[derive(Debug)]
struct RowBlock {
    bits: usize,
    first: usize,
    bytes: &'static [u8],
}

const WIDTHS: [usize; 5] = [6, 5, 4, 3, 2];

impl EmbeddingTable {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let shards = file.shards.as_chunks::<8>().0.iter().map(|shard| QuantizationShard {
            lowest: f32::from_bits(word(shard, 0)),
            step: f32::from_bits(word(shard, 1)),
        });
        let (mut first, mut rest) = (0, file.table);
        let blocks = WIDTHS.iter().enumerate().map(|(at, bits)| {
            let count = word(file.widths, at) as usize;
            let (bytes, after) = rest.split_at(count * row_bytes(*bits));
            let block = RowBlock { bits: *bits, first, bytes };
            (first, rest) = (first + count, after);
            block
        });
        Self { blocks: blocks.collect(), rows: file.rows.as_chunks().0, shards: shards.collect() }
    }

    /// Dequantizes a row, up to the length of `numbers`.
    pub(crate) fn read(&self, row: usize, numbers: &mut [f32]) {
        let [level, shard] = self.rows[row];
        let shard = &self.shards[usize::from(shard)];
        let block = self.blocks.iter().rfind(|block| block.first <= row).unwrap_or(&self.blocks[0]);
        let at = (row - block.first) * row_bytes(block.bits);
        let bytes = &block.bytes[at..at + row_bytes(block.bits)];
        match block.bits {
            6 => unpack::<6>(bytes, level, shard, numbers),
            5 => unpack::<5>(bytes, level, shard, numbers),
            4 => unpack::<4>(bytes, level, shard, numbers),
            3 => unpack::<3>(bytes, level, shard, numbers),
            _ => unpack::<2>(bytes, level, shard, numbers),
        }
    }
}

fn row_bytes(bits: usize) -> usize {
    bits * DIMENSION / 8
}

/// Unpacks groups of eight numbers; a group has as many bytes as a number has bits.
fn unpack<const BITS: usize>(bytes: &[u8], level: u8, shard: &QuantizationShard, numbers: &mut [f32]) {
    let groups = bytes.as_chunks::<BITS>().0;
    for (eight, group) in numbers.as_chunks_mut::<8>().0.iter_mut().zip(groups) {
        let mut word = [0; 8];
        word[..BITS].copy_from_slice(group);
        let word = u64::from_le_bytes(word);
        for (at, number) in eight.iter_mut().enumerate() {
            let above = (word >> (at * BITS)).to_le_bytes()[0] & ((1 << BITS) - 1);
            *number = f32::from(level + above) * shard.step + shard.lowest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_from_their_bits() {
        let shard = QuantizationShard { lowest: -1.0, step: 0.5 };
        let mut numbers = [0.0; 8];
        // 0, 1, 2 … 7 in three bits each, the first in the lowest bits.
        let word = (0..8_u32).map(|value| value << (3 * value)).sum::<u32>().to_le_bytes();
        unpack::<3>(&word[..3], 2, &shard, &mut numbers);
        assert_eq!(numbers.to_vec(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
    }

    #[test]
    fn every_row_has_its_place() {
        let table = EmbeddingTable::new(&ModelFile::read());
        let last = table.blocks.last().expect("blocks");
        assert_eq!(last.first + last.bytes.len() / row_bytes(last.bits), table.rows.len());
        let mut numbers = [f32::NAN; DIMENSION];
        table.read(table.rows.len() - 1, &mut numbers);
        assert!(numbers.iter().all(|number| number.is_finite()));
    }
}

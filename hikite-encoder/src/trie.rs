//! A double-array trie, used in place: one 32-bit unit per node, in the format of darts-clone. A child's index is the
//! exclusive or of the node's index, its offset and the next byte.

#[derive(Debug)]
pub(crate) struct Trie {
    units: &'static [[u8; 4]],
}

const LABEL: u32 = 0x8000_00ff;
const HAS_VALUE: u32 = 0x100;
const VALUE: u32 = 0x7fff_ffff;

impl Trie {
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        Self { units: bytes.as_chunks().0 }
    }

    /// Calls `found` with the length and the value of every key that is a prefix of `text`, shortest first.
    #[inline]
    pub(crate) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let mut at = offset(self.unit(0));
        for (index, byte) in text.iter().enumerate() {
            at ^= usize::from(*byte);
            let unit = self.unit(at);
            if unit & LABEL != u32::from(*byte) {
                return;
            }
            at ^= offset(unit);
            if unit & HAS_VALUE != 0 {
                found(index + 1, (self.unit(at) & VALUE) as usize);
            }
        }
    }

    /// Returns a unit, or one that matches nothing beyond the end.
    #[inline]
    fn unit(&self, at: usize) -> u32 {
        self.units.get(at).map_or(!VALUE, |unit| u32::from_le_bytes(*unit))
    }
}

/// Returns a unit's offset; large ones are stored without their lowest eight bits.
#[inline]
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}

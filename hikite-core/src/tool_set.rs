//! A bit set over the tools of one catalog, in the order of `Catalog::tools()`. Represents the tools that a caller may
//! see, or that a search may return.

/// A set of tool indexes below `len`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSet {
    /// Bits; those beyond `len` are always zero.
    words: Vec<u64>,
    len: usize,
}

const BITS: usize = u64::BITS as usize;

impl ToolSet {
    pub fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(BITS)], len }
    }

    pub fn all(len: usize) -> Self {
        Self::from_fn(len, |_| true)
    }

    pub fn from_fn(len: usize, mut holds: impl FnMut(usize) -> bool) -> Self {
        let mut mask = Self::none(len);
        for at in 0..len {
            mask.words[at / BITS] |= u64::from(holds(at)) << (at % BITS);
        }
        mask
    }

    /// Returns `true` if the index is in the set; never for an index beyond the end.
    pub fn contains(&self, at: usize) -> bool {
        at < self.len && self.words[at / BITS] >> (at % BITS) & 1 == 1
    }

    /// Adds or removes an index; indexes beyond the end are ignored.
    pub fn set(&mut self, at: usize, holds: bool) {
        if at >= self.len {
            return;
        }
        let bit = 1 << (at % BITS);
        if holds {
            self.words[at / BITS] |= bit;
        } else {
            self.words[at / BITS] &= !bit;
        }
    }

    /// Intersects with `other`. Indexes beyond the end of `other` are removed.
    pub fn and(&mut self, other: &Self) {
        for (at, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(at).copied().unwrap_or(0);
        }
    }

    /// Returns the number of indexes in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the number of indexes, in the set or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the indexes in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let rests = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
            rests.take_while(|rest| *rest != 0).map(move |rest| at * BITS + rest.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_mask_is_a_set_of_places(bits in proptest::collection::vec(any::<bool>(), 0..200)) {
            let mask = ToolSet::from_fn(bits.len(), |at| bits[at]);
            let places: Vec<usize> = (0..bits.len()).filter(|at| bits[*at]).collect();
            prop_assert_eq!(mask.iter().collect::<Vec<_>>(), places.clone());
            prop_assert_eq!(mask.count(), places.len());
            prop_assert_eq!(mask.is_empty(), places.is_empty());
            prop_assert!((0..bits.len() + 70).all(|at| mask.contains(at) == bits.get(at).copied().unwrap_or(false)));
        }
    }

    #[test]
    fn nothing_beyond_the_end_is_ever_in() {
        let mut mask = ToolSet::all(65);
        assert_eq!((mask.count(), mask.len()), (65, 65));
        mask.set(65, true);
        assert!(!mask.contains(65));
        mask.set(64, false);
        assert_eq!(mask.count(), 64);
        mask.and(&ToolSet::all(3));
        assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}

//! A sorted list of strings, searched where it lies in the weight file.

use crate::file::word;

#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedStrings {
    /// End of each string in `bytes`.
    ends: &'static [[u8; 4]],
    bytes: &'static [u8],
}

impl SortedStrings {
    /// Reads a list: the number of strings, their ends, then the strings.
    pub(crate) fn new(part: &'static [u8]) -> Self {
        let (count, rest) = part.split_at(4);
        let (ends, bytes) = rest.split_at(word(count, 0) as usize * 4);
        Self { ends: ends.as_chunks().0, bytes }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> &'static [u8] {
        let end = |at: usize| u32::from_le_bytes(self.ends[at]) as usize;
        &self.bytes[at.checked_sub(1).map_or(0, end)..end(at)]
    }

    pub(crate) fn find(&self, text: &[u8]) -> Option<usize> {
        let at = self.first_not_below(text);
        (at < self.len() && self.get(at) == text).then_some(at)
    }

    /// Returns `true` if any string begins with `text`.
    pub(crate) fn has_prefix(&self, text: &[u8]) -> bool {
        let at = self.first_not_below(text);
        at < self.len() && self.get(at).starts_with(text)
    }

    fn first_not_below(&self, text: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle) < text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_their_beginnings_are_found() {
        let strings = SortedStrings::new(b"\x03\0\0\0\x01\0\0\0\x03\0\0\0\x06\0\0\0aabbcd");
        assert_eq!([0, 1, 2].map(|at| strings.get(at)), [b"a".as_slice(), b"ab", b"bcd"]);
        assert_eq!(
            ["a", "ab", "bcd", "b", "c", ""].map(|text| strings.find(text.as_bytes())),
            [Some(0), Some(1), Some(2), None, None, None]
        );
        assert_eq!(
            ["b", "bc", "bcd", "bcde", "c"].map(|text| strings.has_prefix(text.as_bytes())),
            [true, true, true, false, false]
        );
    }
}

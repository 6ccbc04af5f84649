//! Inspects SQLite's write-ahead log before SQLite does. SQLite silently ignores everything after the first invalid
//! frame: after a crash that is right, because the rest was never committed. But a committed transaction after an
//! invalid frame means that the WAL was damaged later.
//!
//! Format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::io::{self, ErrorKind, Read};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// A WAL that SQLite will not read to its last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalDamage {
    /// The first invalid frame, counted from 1; zero for the file header.
    pub(crate) frame: u64,
    /// Committed transactions after it.
    pub(crate) commits: u64,
}

type Checksum = (u32, u32);

/// Inspects a WAL; `None` if SQLite reads all of its commits. `page_bytes` is the page size of the database, used if
/// the WAL header is invalid.
pub(crate) fn inspect(mut log: impl Read, page_bytes: usize) -> io::Result<Option<WalDamage>> {
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(None);
    }
    let word = |at: usize| number(&header, at);
    let is_big_endian = word(0) & 1 == 1;
    let sum_of = |sum, bytes: &[u8]| checksum(sum, bytes, is_big_endian);
    let is_header_valid = word(0) & !1 == MAGIC && sum_of((0, 0), &header[..24]) == (word(24), word(28));
    let page_bytes = if is_header_valid { word(8) as usize } else { page_bytes };
    let mut salts = is_header_valid.then(|| (word(16), word(20)));
    if !(512..=65_536).contains(&page_bytes) {
        return Ok(None);
    }
    // The stored checksum of the previous frame, with which a frame can be verified even after a damaged one.
    let mut before: Option<Checksum> = is_header_valid.then(|| (word(24), word(28)));
    let mut damage = (!is_header_valid).then_some(WalDamage { frame: 0, commits: 0 });
    // A transaction interrupted by a power cut may be partially written; its commit was never acknowledged.
    let mut ended_one = true;
    let mut frame = vec![0; FRAME_HEADER + page_bytes];
    let mut count = 0;
    while fill(&mut log, &mut frame)? {
        count += 1;
        let stored = (number(&frame, 16), number(&frame, 20));
        let own_salts = (number(&frame, 8), number(&frame, 12));
        let is_valid = *salts.get_or_insert(own_salts) == own_salts
            && before.is_some_and(|before| sum_of(sum_of(before, &frame[..8]), &frame[FRAME_HEADER..]) == stored);
        let is_commit = number(&frame, 4) != 0;
        match &mut damage {
            None if !is_valid => {
                ended_one = is_commit && salts == Some(own_salts);
                damage = Some(WalDamage { frame: count, commits: 0 });
            }
            Some(damage) if is_valid && is_commit => damage.commits += 1,
            _ => {}
        }
        before = Some(stored);
    }
    Ok(damage.filter(|damage| damage.commits > u64::from(!ended_one)))
}

/// Fills the buffer. Returns `false` at the end of the input.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn checksum((mut one, mut two): Checksum, bytes: &[u8], is_big_endian: bool) -> Checksum {
    let word = |word: &[u8]| {
        let word = word.try_into().unwrap_or([0; 4]);
        if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    for pair in bytes.chunks_exact(8) {
        one = one.wrapping_add(word(&pair[..4])).wrapping_add(two);
        two = two.wrapping_add(word(&pair[4..])).wrapping_add(one);
    }
    (one, two)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 512;

    /// Builds a WAL with one frame per transaction, as SQLite writes it.
    fn log(transactions: u8, salt: u32) -> Vec<u8> {
        log_of(&vec![true; transactions.into()], salt)
    }

    /// Builds a WAL of frames, some of which end a transaction.
    fn log_of(ends: &[bool], salt: u32) -> Vec<u8> {
        let mut log: Vec<u8> = [MAGIC, 3_007_000, 512, 0, salt, 7].into_iter().flat_map(u32::to_be_bytes).collect();
        let mut sum = checksum((0, 0), &log, false);
        let put = |log: &mut Vec<u8>, sum: Checksum| {
            log.extend([sum.0, sum.1].into_iter().flat_map(u32::to_be_bytes));
        };
        put(&mut log, sum);
        for (number, ends) in (1..).zip(ends) {
            let head: Vec<u8> = [1, u32::from(*ends)].into_iter().flat_map(u32::to_be_bytes).collect();
            let page = [number; PAGE];
            sum = checksum(checksum(sum, &head, false), &page, false);
            log.extend(head);
            log.extend([salt, 7].into_iter().flat_map(u32::to_be_bytes));
            put(&mut log, sum);
            log.extend(page);
        }
        log
    }

    #[track_caller]
    fn check(log: &[u8], expected: Option<(u64, u64)>) {
        let found = inspect(log, PAGE).expect("read");
        assert_eq!(found.map(|damage| (damage.frame, damage.commits)), expected);
    }

    #[test]
    fn what_a_crash_leaves_is_no_damage() {
        let whole = log(5, 3);
        check(&whole, None);
        check(&[], None);
        check(&whole[..HEADER], None);
        check(&whole[..whole.len() - 1], None);
        let mut torn = whole.clone();
        *torn.last_mut().expect("bytes") ^= 1;
        check(&torn, None);
        // Frames from before the WAL was restarted.
        let mut again = log(2, 4);
        let at = again.len();
        again.extend(&whole[at..]);
        check(&again, None);
    }

    #[test]
    fn a_transaction_that_reached_the_disk_in_parts_is_no_damage() {
        let frame = FRAME_HEADER + PAGE;
        let damaged = |ends: &[bool], number: usize| {
            let mut log = log_of(ends, 3);
            log[HEADER + (number - 1) * frame + FRAME_HEADER] ^= 0x40;
            log
        };
        check(&damaged(&[true, true, false, false, false, true], 4), None);
        // Another commit after it proves that it was committed too.
        check(&damaged(&[true, false, true, true], 2), Some((2, 2)));
    }

    #[test]
    fn a_change_in_the_middle_is_damage() {
        let whole = log(5, 3);
        let frame = FRAME_HEADER + PAGE;
        for (at, expected) in [
            (HEADER + FRAME_HEADER + 9, (1, 4)),
            (HEADER + frame + FRAME_HEADER, (2, 3)),
            (HEADER + 2 * frame + 9, (3, 2)),
            // The stored checksum, without which the next frame cannot be verified.
            (HEADER + frame + 17, (2, 2)),
            (4, (0, 4)),
        ] {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            check(&changed, Some(expected));
        }
    }
}

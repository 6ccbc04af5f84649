//! Properties that hold for any input of hikite's parsers. Each property is a plain function that panics when it is
//! violated; `tests/fuzz.rs` drives them with mutated real inputs, and any other fuzzing engine could.

pub mod check;
pub mod config;
pub mod line;
pub mod message;
pub mod object;
pub mod plan;
pub mod seed;
pub mod sse;
pub mod toon;

/// Splits the input into chunks of the given lengths, cycling through them; a length of zero counts as one.
fn chunks<'a>(input: &'a [u8], lengths: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = input;
    let mut lengths = lengths.iter().copied().cycle();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = lengths.next().map_or(rest.len(), |length| usize::from(length.max(1)));
        let (chunk, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        Some(chunk)
    })
}

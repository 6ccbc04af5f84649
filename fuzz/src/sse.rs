//! Server-sent events. No chunking changes an event, no event exceeds the size limit, and written events read back.

use hikite_wire::sse::{EventTooLarge, SseEvent, SseParser, message};

const EVENT_BYTES_LARGE: usize = 1 << 20;
const EVENT_BYTES_SMALL: usize = 48;

pub fn assert_properties(input: &[u8], lengths: &[u8]) {
    let whole = read(std::iter::once(input), EVENT_BYTES_LARGE);
    assert_eq!(read(super::chunks(input, lengths), EVENT_BYTES_LARGE), whole, "in chunks of {lengths:?}");
    if let Ok(events) = read(super::chunks(input, lengths), EVENT_BYTES_SMALL) {
        assert!(events.iter().all(|event| event.data.len() <= EVENT_BYTES_SMALL));
        assert_eq!(Ok(events), whole, "a limit changes events");
    }
    a_message_reads_back(input);
}

fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>, longest: usize) -> Result<Vec<SseEvent>, EventTooLarge> {
    let mut parser = SseParser::new(longest);
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk)?;
        while let Some(event) = parser.next_event()? {
            events.push(event);
        }
    }
    Ok(events)
}

/// Asserts that a written message reads back. Line ends occur only between JSON tokens, so each may become a line feed.
fn a_message_reads_back(json: &[u8]) {
    let events = read(std::iter::once(&message(json)[..]), EVENT_BYTES_LARGE).expect("small");
    let expected: Vec<u8> = json.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect();
    assert_eq!(events.len(), 1);
    assert_eq!(&events[0].data[..], &expected[..]);
}

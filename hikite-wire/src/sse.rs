//! Server-sent events: the parser for upstream streams and the encoder for our own. Follows the event stream section of
//! the HTML standard.

use bytes::{Bytes, BytesMut};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Event name; `message` if absent.
    pub name: Option<String>,
    pub id: Option<String>,
    pub data: Bytes,
    pub retry_ms: Option<u64>,
}

#[derive(Debug)]
pub struct SseParser {
    buffer: BytesMut,
    searched: usize,
    event: SseEvent,
    data: SseData,
    longest: usize,
    started: bool,
    /// `true` if the last byte was a carriage return; a line feed after it belongs to the same line end.
    after_return: bool,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct EventTooLarge(pub usize);

impl SseParser {
    pub fn new(longest: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            event: SseEvent::default(),
            data: SseData::None,
            longest,
            started: false,
            after_return: false,
        }
    }

    /// Appends bytes. A line that would exceed the limit fails before its memory is allocated.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        let is_one_line = self.searched == self.buffer.len();
        if is_one_line
            && self.buffer.len() + bytes.len() > self.longest
            && memchr::memchr2(b'\n', b'\r', bytes).is_none()
        {
            return Err(EventTooLarge(self.longest));
        }
        self.make_room(bytes.len());
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Grows the buffer. It doubles as it grows, but a long one is sized for the longest line at once, not twice that.
    fn make_room(&mut self, more: usize) {
        let needed = self.buffer.len() + more;
        if needed > self.buffer.capacity() && needed > self.longest / 4 {
            let mut larger = BytesMut::with_capacity(needed.max(self.longest));
            larger.extend_from_slice(&self.buffer);
            self.buffer = larger;
        }
    }

    /// Returns the next complete event: one with data, an id or a retry time.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.field(&line);
                if self.data.len() > self.longest {
                    return Err(EventTooLarge(self.longest));
                }
                continue;
            }
            let mut event = std::mem::take(&mut self.event);
            let data = std::mem::take(&mut self.data).whole();
            if data.is_some() || event.id.is_some() || event.retry_ms.is_some() {
                event.data = data.unwrap_or_default();
                return Ok(Some(event));
            }
        }
        if self.buffer.len() > self.longest { Err(EventTooLarge(self.longest)) } else { Ok(None) }
    }

    fn next_line(&mut self) -> Option<Bytes> {
        if !self.started && !self.buffer.is_empty() {
            const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
            if self.buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.buffer) {
                return None;
            }
            self.started = true;
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                let _ = self.buffer.split_to(BYTE_ORDER_MARK.len());
            }
        }
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                let _ = self.buffer.split_to(1);
            }
        }
        let Some(at) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1);
        self.searched = 0;
        self.after_return = line.last() == Some(&b'\r');
        line.truncate(line.len() - 1);
        Some(line.freeze())
    }

    fn field(&mut self, line: &Bytes) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (&line[..], &[][..]),
        };
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" => self.data.add(line.slice_ref(value)),
            b"event" => self.event.name = Some(text()),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => self.event.retry_ms = text().parse().ok(),
            _ => {}
        }
    }
}

/// Data lines of one event. A single line, the usual case, is not copied; several are joined.
#[derive(Debug, Default)]
enum SseData {
    #[default]
    None,
    Line(Bytes),
    Lines(BytesMut),
}

impl SseData {
    fn add(&mut self, line: Bytes) {
        *self = match std::mem::take(self) {
            Self::None => Self::Line(line),
            Self::Line(first) => Self::Lines(joined(BytesMut::from(first), &line)),
            Self::Lines(lines) => Self::Lines(joined(lines, &line)),
        };
    }

    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Line(line) => line.len(),
            Self::Lines(lines) => lines.len(),
        }
    }

    fn whole(self) -> Option<Bytes> {
        match self {
            Self::None => None,
            Self::Line(line) => Some(line),
            Self::Lines(lines) => Some(lines.freeze()),
        }
    }
}

fn joined(mut lines: BytesMut, line: &[u8]) -> BytesMut {
    lines.extend_from_slice(b"\n");
    lines.extend_from_slice(line);
    lines
}

/// Encodes a JSON-RPC message as an event. Line ends between JSON tokens become several data lines.
pub fn message(json: &[u8]) -> Bytes {
    event("message", json)
}

/// Encodes a message with an event id, for resumable streams.
pub fn numbered(id: &str, json: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(json.len() + id.len() + 32);
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(id.as_bytes());
    out.push(b'\n');
    write_event("message", json, &mut out);
    out.into()
}

pub fn event(name: &str, data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + name.len() + 24);
    write_event(name, data, &mut out);
    out.into()
}

fn write_event(name: &str, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(line);
    }
    out.extend_from_slice(b"\n\n");
}

/// Comment that keeps an idle stream open through proxies.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            parser.feed(chunk).expect("small");
            while let Some(event) = parser.next_event().expect("small") {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn fields_comments_and_line_ends_follow_the_standard() {
        let events = parse(&[b"\xef\xbb\xbf: hello\r\nevent: endpoint\r\ndata: /a\rdata:b\n\nid: 7\n\nretry: 50\ndata\n\nevent: lost\n\n"]);
        assert_eq!(events.len(), 3);
        assert_eq!(events[0].name.as_deref(), Some("endpoint"));
        assert_eq!(&events[0].data[..], b"/a\nb");
        assert_eq!((events[1].id.as_deref(), &events[1].data[..]), (Some("7"), &b""[..]));
        assert_eq!(events[2].retry_ms, Some(50));
    }

    #[test]
    fn an_event_over_the_limit_is_refused() {
        let mut parser = SseParser::new(10);
        parser.feed(b"data: 123456789012345\n").expect("it ends");
        assert_eq!(parser.next_event(), Err(EventTooLarge(10)));
    }

    #[test]
    fn a_line_without_end_is_not_kept_beyond_the_limit() {
        let mut parser = SseParser::new(10);
        assert_eq!(parser.feed(b"data: 12345"), Err(EventTooLarge(10)));
        parser.feed(b"data: 1234").expect("small");
        assert_eq!(parser.next_event(), Ok(None));
        assert_eq!(parser.feed(b"5"), Err(EventTooLarge(10)));
        assert_eq!(parser.buffer.len(), 10);
    }

    #[test]
    fn a_long_line_takes_no_more_room_than_the_longest() {
        const LONGEST: usize = 1 << 20;
        let mut parser = SseParser::new(LONGEST);
        // Doubled, this first piece would come to just under the limit, and then to nearly twice that.
        let piece = [b'x'; 1023];
        while parser.feed(&piece).is_ok() {
            assert_eq!(parser.next_event(), Ok(None));
        }
        assert!(parser.buffer.len() > LONGEST - piece.len());
        assert!(parser.buffer.capacity() <= LONGEST, "{}", parser.buffer.capacity());
    }

    #[test]
    fn a_line_that_ends_in_time_is_read() {
        let mut parser = SseParser::new(10);
        parser.feed(b"data: 1234").expect("small");
        assert_eq!(parser.next_event(), Ok(None));
        parser.feed(b"56789\n\n").expect("it ends");
        assert_eq!(&parser.next_event().expect("small").expect("an event").data[..], b"123456789");
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_events(data in "[a-z:\r\n ]{0,200}", cut in 1usize..9) {
            let whole = parse(&[data.as_bytes()]);
            let chunks: Vec<&[u8]> = data.as_bytes().chunks(cut).collect();
            prop_assert_eq!(whole, parse(&chunks));
        }

        #[test]
        fn what_is_written_reads_back(text in "[^\r\n]{0,200}") {
            let events = parse(&[&message(text.as_bytes())]);
            prop_assert_eq!(&events[0].data[..], text.as_bytes());
        }
    }
}

//! Scans the bytes of a valid JSON document once, without building a tree, for callers that copy most of it.

use std::borrow::Cow;

pub(crate) struct Scanner<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner. `bytes` must hold one valid value.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Returns the first byte of the next token.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.rest.first().copied()
    }

    /// Returns the number of bytes consumed.
    pub(crate) fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Consumes a string and returns it with its quotes.
    pub(crate) fn string(&mut self) -> &'a [u8] {
        self.skip_blanks();
        let mut escaped = false;
        let end = self.rest.iter().skip(1).position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        self.take(end.map_or(self.rest.len(), |end| end + 2))
    }

    /// Consumes a number or a literal.
    pub(crate) fn plain(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| b",:]} \t\r\n".contains(byte));
        self.take(end.unwrap_or(self.rest.len()))
    }

    /// Consumes an array or object and returns its bytes.
    pub(crate) fn nested(&mut self) -> &'a [u8] {
        let whole = self.rest;
        let mut open = 0_usize;
        loop {
            match self.rest.first() {
                Some(b'"') => {
                    self.string();
                    continue;
                }
                Some(b'{' | b'[') => open += 1,
                Some(b'}' | b']') => open = open.saturating_sub(1),
                Some(_) => {}
                None => break,
            }
            self.take(1);
            if open == 0 {
                break;
            }
        }
        &whole[..whole.len() - self.rest.len()]
    }

    /// Consumes any value and returns its bytes.
    pub(crate) fn value(&mut self) -> &'a [u8] {
        match self.peek() {
            Some(b'{' | b'[') => self.nested(),
            Some(b'"') => self.string(),
            _ => self.plain(),
        }
    }

    /// Returns `true` at the end of the list. Consumes the end, or the comma before the next item.
    pub(crate) fn at_end(&mut self, end: u8) -> bool {
        match self.peek() {
            Some(b',') => {
                self.take(1);
                false
            }
            Some(byte) if byte != end => false,
            _ => {
                self.take(1);
                true
            }
        }
    }

    /// Consumes the colon between a name and its value.
    pub(crate) fn colon(&mut self) {
        self.skip_blanks();
        self.take(1);
    }

    pub(crate) fn skip_blanks(&mut self) {
        let blanks = self.rest.iter().position(|byte| !b" \t\r\n".contains(byte));
        self.take(blanks.unwrap_or(self.rest.len()));
    }

    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

/// Returns the text of a quoted string; `None` for a lone surrogate.
pub(crate) fn text_of(string: &[u8]) -> Option<Cow<'_, str>> {
    if string.contains(&b'\\') {
        return serde_json::from_slice(string).ok().map(Cow::Owned);
    }
    let inner = string.get(1..string.len().checked_sub(1)?)?;
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

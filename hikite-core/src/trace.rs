//! W3C Trace Context: parses and formats `traceparent` and `tracestate`.

use std::fmt;
use std::sync::Arc;

/// Trace context that is propagated to the next span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    pub span: u64,
    pub sampled: bool,
    /// `tracestate`, passed on unchanged.
    pub state: Option<Arc<str>>,
}

/// Longest `tracestate` that is passed on, in bytes.
const STATE_BYTES: usize = 512;

impl TraceContext {
    /// Parses a `traceparent`. Returns `None` unless it conforms exactly to the specification.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let bytes = traceparent.as_bytes();
        let has_dashes = bytes.len() >= 55 && [2, 35, 52].iter().all(|at| bytes[*at] == b'-');
        if !has_dashes || !traceparent.is_ascii() {
            return None;
        }
        let version = hex(&traceparent[..2])?;
        // Later versions may append further fields.
        let fits = match version {
            0 => bytes.len() == 55,
            0xff => false,
            _ => bytes.len() == 55 || bytes[55] == b'-',
        };
        let trace = hex(&traceparent[3..35])?;
        let span = u64::try_from(hex(&traceparent[36..52])?).ok()?;
        let flags = hex(&traceparent[53..55])?;
        (fits && trace != 0 && span != 0).then_some(Self { trace, span, sampled: flags & 1 == 1, state: None })
    }

    /// Attaches a `tracestate`, if it is valid.
    #[must_use]
    pub fn with_state(self, tracestate: Option<&str>) -> Self {
        let fits = |state: &&str| {
            (1..=STATE_BYTES).contains(&state.len()) && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        Self { state: tracestate.map(str::trim).filter(fits).map(Into::into), ..self }
    }

    /// Returns the trace id as it appears in logs and traces.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }
}

/// Formats a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Parses lower-case hexadecimal digits only.
fn hex(text: &str) -> Option<u128> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.bytes().all(digit).then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context = TraceContext::parse(GOOD).expect("good");
        assert_eq!((context.to_string().as_str(), context.sampled), (GOOD, true));
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let later = format!("01{}-more", &GOOD[2..]);
        assert_eq!(TraceContext::parse(&later), Some(context.clone()));
        let unsampled = GOOD.replace("-01", "-02");
        assert!(!TraceContext::parse(&unsampled).expect("good").sampled);
        assert_eq!(context.clone().with_state(Some(" a=1 ")).state.as_deref(), Some("a=1"));
        for state in ["", " ", "a=\u{7f}", "é", &"x".repeat(513)] {
            assert_eq!(context.clone().with_state(Some(state)).state, None, "{state}");
        }
    }

    #[test]
    fn what_is_no_context_is_none() {
        for bad in [
            "",
            "x",
            &GOOD[..54],
            &format!("{GOOD}-x"),
            &GOOD.replace("00-4b", "ff-4b"),
            &GOOD.replace("4bf9", "4BF9"),
            &GOOD.replace("4bf9", "+bf9"),
            &GOOD.replace('-', "_"),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
            &GOOD.replace("00f067aa0ba902b7", "0000000000000000"),
            &GOOD.replace("4bf9", "\u{e9}f9"),
            &format!("01{}x", &GOOD[2..]),
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }
}

//! Converts HTTP responses to values or errors. Error messages of a service are shortened and sanitized: no URL, no
//! header, no credential of the request.

use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_egress::{ResponseBody, SendError, read, retry_after};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Response, StatusCode};

use crate::result_path::ResultPath;

/// Bytes read from an error response.
pub(crate) const REFUSAL_BYTES: usize = 64 * 1024;
/// Characters shown of an error message.
const MESSAGE_CHARS: usize = 200;
/// Members that may hold the error message, most common first.
const MESSAGE_MEMBERS: [&str; 7] = ["message", "error_description", "detail", "error", "title", "reason", "errors"];
/// Shorter texts are no credentials, and masking them would garble the message.
const SECRET_LENGTH_MIN: usize = 6;

pub(crate) async fn value(
    method: &Method,
    answer: Response<ResponseBody>,
    pick: Option<&ResultPath>,
    limit: usize,
    secrets: &[Box<str>],
) -> Result<Raw, Error> {
    let status = answer.status();
    let (parts, body) = answer.into_parts();
    if !status.is_success() {
        let bytes = read(body, REFUSAL_BYTES).await.unwrap_or_default();
        return Err(refusal(status, &parts.headers, &bytes, secrets));
    }
    if method == Method::HEAD {
        return Ok(Object::default().with("status", Raw::of(&status.as_u16())).raw());
    }
    if parts.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Err(Error::new(
            ErrorKind::ToolExecution,
            "The service sent a compressed response that was not requested.",
        ));
    }
    let bytes = read(body, limit).await.map_err(|error| transport_error(&error))?;
    let value = decode(&parts.headers, bytes)?;
    match pick {
        None => Ok(value),
        Some(pick) => pick.find(&value).ok_or_else(|| {
            let message = format!("The response of the service has nothing at `{}`.", pick.written());
            Error::new(ErrorKind::ToolExecution, message)
                .hint("The `result` path of the tool does not match the response.")
        }),
    }
}

/// Converts a transport failure to an error. The reason goes to the log only.
pub(crate) fn transport_error(error: &SendError) -> Error {
    tracing::debug!(reason = %error, "a request of a tool failed");
    match error {
        SendError::TooLarge(limit) => {
            let message = format!("The response of the service is larger than {limit} bytes.");
            Error::new(ErrorKind::PayloadTooLarge, message).hint("Ask for less, or raise `limits.answer_bytes`.")
        }
        SendError::Connect(_) => unavailable("The service cannot be reached."),
        SendError::Transfer(_) => {
            unavailable("The connection to the service was lost before the response was complete.")
        }
        SendError::Refused => {
            let message = "hikite is not allowed to call the address of this tool.";
            Error::new(ErrorKind::ToolExecution, message)
                .hint("Only public addresses and those in `egress.allow` of the config are allowed.")
        }
        SendError::Certificates(_) => Error::new(ErrorKind::Internal, "The system's certificates cannot be read."),
    }
}

fn unavailable(message: &str) -> Error {
    Error::new(ErrorKind::UpstreamUnavailable, message).hint("Try again later.")
}

fn decode(headers: &HeaderMap, bytes: Bytes) -> Result<Raw, Error> {
    if bytes.is_empty() {
        return Ok(Raw::null());
    }
    let bytes = if bytes.starts_with("\u{feff}".as_bytes()) { bytes.slice(3..) } else { bytes };
    if let Ok(value) = Raw::parse(bytes.clone()) {
        return Ok(value);
    }
    if is_json(headers) {
        return Err(Error::new(ErrorKind::ToolExecution, "The service announced JSON but returned something else."));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.contains('\0') => Ok(Raw::from(text)),
        _ => {
            let message = format!("The service returned {} bytes that are neither JSON nor text.", bytes.len());
            Err(Error::new(ErrorKind::ToolExecution, message).hint("Tools of this kind only relay JSON and text."))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = media_type(headers);
    kind == "application/json" || kind.ends_with("+json")
}

pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn refusal(status: StatusCode, headers: &HeaderMap, body: &Bytes, secrets: &[Box<str>]) -> Error {
    let kind = match status.as_u16() {
        429 => ErrorKind::RateLimit,
        408 => ErrorKind::Timeout,
        502..=504 => ErrorKind::UpstreamUnavailable,
        _ => ErrorKind::ToolExecution,
    };
    let mut message = format!("The service returned {}", status.as_u16());
    if let Some(reason) = status.canonical_reason() {
        message = format!("{message} {reason}");
    }
    if let Some(words) =
        words(headers, body).map(|words| sanitize(&words, secrets, MESSAGE_CHARS)).filter(|w| !w.is_empty())
    {
        message = format!("{message}: {words}");
    }
    let error = Error::new(kind, message);
    let error = match status.as_u16() {
        300..=399 => error.hint("Redirects are not followed. Use the target address in the tool."),
        401 | 403 => error.hint("The credentials of the tool may be wrong or insufficient."),
        _ => error,
    };
    let waits = error.kind.definition().retry;
    Error { retry_after: waits.then(|| retry_after(headers)).flatten().map(bounded), ..error }
}

/// Limits the delay of `Retry-After`.
fn bounded(wait: Duration) -> Duration {
    wait.min(Duration::from_secs(24 * 3600))
}

/// Extracts the error message of a response, if it has one.
pub(crate) fn words(headers: &HeaderMap, body: &Bytes) -> Option<String> {
    if let Ok(value) = Raw::parse(body.clone()) {
        return extract_message(&value, 0);
    }
    let is_plain = media_type(headers) == "text/plain";
    is_plain.then(|| String::from_utf8_lossy(body).into_owned())
}

fn extract_message(value: &Raw, depth: usize) -> Option<String> {
    if depth > 3 {
        return None;
    }
    if let Some(text) = value.text() {
        return Some(text);
    }
    if let Some(items) = value.items() {
        return extract_message(items.first()?, depth + 1);
    }
    let members = value.object()?;
    MESSAGE_MEMBERS.iter().filter_map(|word| members.get(word)).find_map(|member| extract_message(member, depth + 1))
}

/// Returns one short line without URLs and without the fixed values of the request.
pub(crate) fn sanitize(text: &str, secrets: &[Box<str>], most: usize) -> String {
    let mut text: String = text.chars().take(most * 8).collect();
    for secret in secrets.iter().filter(|secret| secret.len() >= SECRET_LENGTH_MIN) {
        text = text.replace(&**secret, "***");
    }
    let plain = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let words: Vec<&str> = plain.map(|word| if word.contains("://") { "…" } else { word }).collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(status: u16, headers: &[(&'static str, &str)], body: &str, secrets: &[&str]) -> Error {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a value"));
        }
        let secrets: Vec<Box<str>> = secrets.iter().copied().map(Into::into).collect();
        let status = StatusCode::from_u16(status).expect("a status");
        refusal(status, &map, &Bytes::from(body.to_owned()), &secrets)
    }

    #[test]
    fn each_status_has_its_kind() {
        for (status, kind) in [
            (302, ErrorKind::ToolExecution),
            (400, ErrorKind::ToolExecution),
            (401, ErrorKind::ToolExecution),
            (404, ErrorKind::ToolExecution),
            (408, ErrorKind::Timeout),
            (429, ErrorKind::RateLimit),
            (500, ErrorKind::ToolExecution),
            (501, ErrorKind::ToolExecution),
            (502, ErrorKind::UpstreamUnavailable),
            (503, ErrorKind::UpstreamUnavailable),
            (504, ErrorKind::UpstreamUnavailable),
            (507, ErrorKind::ToolExecution),
        ] {
            let error = refuse(status, &[("retry-after", "7")], "", &[]);
            assert_eq!(error.kind, kind, "{status}");
            let waits = kind.definition().retry.then_some(Duration::from_secs(7));
            assert_eq!(error.retry_after, waits, "{status}");
            assert!(error.message.starts_with(&format!("The service returned {status}")), "{}", error.message);
        }
    }

    #[track_caller]
    fn check(kind: &str, body: &str, expected: &str) {
        let error = refuse(404, &[("content-type", kind)], body, &["Bearer s3cr3t-key", "s3cr3t-key"]);
        assert_eq!(&*error.message, expected, "{body}");
    }

    #[test]
    fn words_of_a_refusal_are_short_and_clean() {
        let json = "application/json";
        let bare = "The service returned 404 Not Found";
        check(json, r#"{"error":{"code":5,"message":"no such\n thing"}}"#, &format!("{bare}: no such thing"));
        check(json, r#"{"errors":[{"detail":"bad"}]}"#, &format!("{bare}: bad"));
        check(json, r#"{"message":"bad key s3cr3t-key"}"#, &format!("{bare}: bad key ***"));
        check(json, r#"{"message":"see https://10.0.0.1/x now"}"#, &format!("{bare}: see … now"));
        check(json, r#"{"a":1}"#, bare);
        check("text/html", "<h1>Not here</h1>", bare);
        check("text/plain", "gone\u{7} away", &format!("{bare}: gone away"));
        check("text/plain", &"x".repeat(5000), &format!("{bare}: {}…", "x".repeat(200)));
    }

    #[test]
    fn answers_are_json_or_text() {
        let decode = |kind: &'static str, body: &'static [u8]| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static(kind))]);
            super::decode(&headers, Bytes::from_static(body)).map(|raw| raw.as_str().into_owned())
        };
        assert_eq!(decode("application/json", br#" {"a" : 1} "#).as_deref().ok(), Some(r#"{"a" : 1}"#));
        assert_eq!(decode("text/plain", b"{\"a\":1}").as_deref().ok(), Some("{\"a\":1}"));
        assert_eq!(decode("text/plain", b"a\"b").as_deref().ok(), Some(r#""a\"b""#));
        assert_eq!(decode("application/json", b"").as_deref().ok(), Some("null"));
        assert_eq!(decode("application/json", b"\xef\xbb\xbf1").as_deref().ok(), Some("1"));
        assert!(decode("application/json", b"<html>").is_err());
        assert!(decode("application/problem+json", b"{").is_err());
        assert!(decode("image/png", b"\x89PNG\r\n\x1a\n\0").is_err());
        assert!(decode("text/plain", b"a\0b").is_err());
    }
}

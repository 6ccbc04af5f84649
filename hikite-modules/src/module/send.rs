//! Sends one request: adds the credential, respects the rate limit, and retries where allowed. An error response
//! becomes an error with the service's message.

use std::time::Duration;

use bytes::Bytes;
use hikite_core::call_policy;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::retry;
use hikite_egress::{RequestBody, SendError, read};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, StatusCode, Uri};
use serde_json::{Value, json};

use super::account::CallAccount;
use super::call::ServiceCall;
use super::multipart;
use super::rate_limiter::{WAIT_MAX, rate_limited, wait_in};
use super::request::{FilledRequest, RequestTemplate};
use crate::expression::Expression;
use crate::file::{self, ResponseFormat};
use crate::response::{REFUSAL_BYTES, media_type, sanitize, transport_error, words};
use crate::scope::VariableScope;

/// Characters shown of an error message.
const MESSAGE_CHARS: usize = 600;
/// First pause before a retry.
const PAUSE: Duration = Duration::from_millis(500);

/// Retry rules of a service.
#[derive(Debug)]
pub(crate) struct RetryRules {
    pub(crate) rule: file::RetryRuleFile,
    pub(crate) also: Option<Expression>,
}

/// Expressions that extract error messages.
#[derive(Debug, Default)]
pub(crate) struct ErrorExpressions {
    pub(crate) message: Option<Expression>,
    pub(crate) code: Option<Expression>,
}

pub(crate) struct ServiceResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Raw,
}

/// An error response.
struct ErrorResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

enum SendOutcome {
    Answer(ServiceResponse),
    Refusal(ErrorResponse),
}

enum SendFailure {
    NotSent(SendError),
    Failed(Error),
}

impl From<SendError> for SendFailure {
    fn from(error: SendError) -> Self {
        Self::NotSent(error)
    }
}

impl From<Error> for SendFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl ServiceCall<'_> {
    /// Sends a request, with retries and one credential renewal.
    pub(crate) async fn send(&self, filled: &FilledRequest, rule: &RequestTemplate) -> Result<ServiceResponse, Error> {
        let account = self.account().await?;
        let outcome = self.send_until_answered(&account, filled, rule).await;
        if let (Ok(_), Some(provider)) = (&outcome, &self.service.provider) {
            let held = self.account.lock().await;
            if let Some(credential) = held.as_ref().and_then(|account| account.credential.as_ref()) {
                self.service.credential_provider.accepted(provider, credential);
            }
        }
        outcome
    }

    async fn send_until_answered(
        &self,
        account: &CallAccount,
        filled: &FilledRequest,
        rule: &RequestTemplate,
    ) -> Result<ServiceResponse, Error> {
        match self.send_as(account, filled, rule).await {
            Err(error) if error.kind == ErrorKind::AccountRequired => match self.renewed(account).await? {
                Some(newer) => self.send_as(&newer, filled, rule).await,
                None => Err(error),
            },
            outcome => outcome,
        }
    }

    /// Sends a request with this account, with retries but without renewal.
    pub(crate) async fn send_as(
        &self,
        account: &CallAccount,
        filled: &FilledRequest,
        rule: &RequestTemplate,
    ) -> Result<ServiceResponse, Error> {
        let mut attempts = 0;
        loop {
            let refusal = match self.send_once(account, filled, rule).await {
                Ok(SendOutcome::Answer(answer)) => return Ok(answer),
                Ok(SendOutcome::Refusal(refusal)) => refusal,
                Err(SendFailure::NotSent(error)) if self.may_resend(&error, attempts) => {
                    attempts += 1;
                    tokio::time::sleep(self.backoff(attempts)).await;
                    continue;
                }
                Err(SendFailure::NotSent(error)) => return Err(transport_error(&error)),
                Err(SendFailure::Failed(error)) => return Err(error),
            };
            if !self.is_retryable(&refusal) {
                return Err(self.refused(&refusal, account));
            }
            let wait = self.wait(&refusal, attempts + 1);
            // A retryable 403 is a rate limit in disguise and says nothing about the credential.
            let is_limit = matches!(refusal.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN);
            if is_limit {
                account.rate_limiter.close(wait);
            }
            if attempts >= self.service.retry.rule.attempts || wait > WAIT_MAX {
                let told = self.refused(&refusal, account);
                let told =
                    if is_limit { Error { kind: ErrorKind::RateLimit, ..told.hint("Try again later.") } } else { told };
                let waits = wait > WAIT_MAX && told.kind == ErrorKind::RateLimit;
                return Err(if waits { Error { message: told.message, ..rate_limited(wait) } } else { told });
            }
            attempts += 1;
            tokio::time::sleep(wait).await;
        }
    }

    async fn send_once(
        &self,
        account: &CallAccount,
        filled: &FilledRequest,
        rule: &RequestTemplate,
    ) -> Result<SendOutcome, SendFailure> {
        let request = self.request(account, filled)?;
        let _turn = account.rate_limiter.acquire(self.writes).await?;
        let answer = self.service.client.send(request).await?;
        let (parts, body) = answer.into_parts();
        account.rate_limiter.learn(&parts.headers);
        if rule.allow.contains(&parts.status.as_u16()) {
            return Ok(SendOutcome::Answer(ServiceResponse { headers: parts.headers, body: Raw::null() }));
        }
        if !parts.status.is_success() {
            let body = read(body, REFUSAL_BYTES).await.unwrap_or_default();
            return Ok(SendOutcome::Refusal(ErrorResponse { status: parts.status, headers: parts.headers, body }));
        }
        let bytes = read(body, self.service.answer_bytes).await?;
        match decode(&parts.headers, bytes, rule.answer) {
            Some(body) => Ok(SendOutcome::Answer(ServiceResponse { headers: parts.headers, body })),
            None => Err(self.unreadable(&parts.headers, rule.answer).into()),
        }
    }

    fn request(&self, account: &CallAccount, filled: &FilledRequest) -> Result<HttpRequest<RequestBody>, Error> {
        let wrong = |_| Error::new(ErrorKind::Validation, "The arguments result in an address that is too long.");
        let uri = Uri::try_from(format!("{}{}", account.base, filled.target())).map_err(wrong)?;
        let mut headers = self.service.headers.clone();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("hikite/", env!("CARGO_PKG_VERSION"))));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        for (name, value) in &filled.headers {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(credential) = &account.credential {
            let value = format!("{} {}", credential.scheme.word(), credential.secret.expose());
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                Error::new(ErrorKind::AccountRequired, "The token of the account cannot be sent in a header.")
                    .hint("Enter it without line breaks.")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let content = match &filled.body {
            Some(body) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Bytes::from(body.to_string())
            }
            None => {
                if matches!(filled.method, Method::POST | Method::PUT | Method::PATCH) {
                    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                }
                Bytes::new()
            }
        };
        let mut request = HttpRequest::new(RequestBody::new(content));
        *request.method_mut() = filled.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }

    fn unreadable(&self, headers: &HeaderMap, wanted: ResponseFormat) -> Error {
        let (title, kind) = (&self.service.title, media_type(headers));
        let (what, hint) = match wanted {
            ResponseFormat::Text | ResponseFormat::Auto => ("not text", "This tool can only read text."),
            _ => ("not the expected JSON", "Try again later; the service may have a problem."),
        };
        Error::new(ErrorKind::ToolExecution, format!("{title} returned a response that is {what} (`{kind}`)."))
            .hint(hint)
    }

    /// Returns `true` if a failed request may be sent again: it was a read, and the connection broke.
    fn may_resend(&self, error: &SendError, attempts: u32) -> bool {
        let retry = match error {
            SendError::Transfer(_) => !self.writes,
            SendError::Connect(_) | SendError::TooLarge(_) | SendError::Refused | SendError::Certificates(_) => false,
        };
        retry && attempts < self.service.retry.rule.attempts
    }

    /// Returns `true` if the request may succeed later.
    fn is_retryable(&self, refusal: &ErrorResponse) -> bool {
        let RetryRules { rule, also } = &self.service.retry;
        let status = refusal.status.as_u16();
        let named = if self.writes { &rule.writes } else { &rule.status };
        let also = || {
            let Some(also) = also else { return false };
            let headers: serde_json::Map<String, Value> = refusal
                .headers
                .iter()
                .filter_map(|(name, value)| Some((name.to_string(), Value::from(value.to_str().ok()?))))
                .collect();
            let input = json!({ "status": status, "headers": headers, "body": refusal.value() });
            also.holds(&input, &VariableScope::default()).unwrap_or(false)
        };
        named.contains(&status) || also()
    }

    fn wait(&self, refusal: &ErrorResponse, attempt: u32) -> Duration {
        let after = &self.service.retry.rule.after;
        let told = after.iter().find_map(|name| wait_in(&refusal.headers, name));
        told.unwrap_or_else(|| self.backoff(attempt))
    }

    fn backoff(&self, attempt: u32) -> Duration {
        retry::backoff(call_policy::RetryPolicy { attempts: u32::MAX, delay: PAUSE }, attempt - 1, self.share)
    }

    /// Builds the error from the service's message, without secrets.
    fn refused(&self, refusal: &ErrorResponse, account: &CallAccount) -> Error {
        let status = refusal.status.as_u16();
        let kind = match status {
            400 | 422 => ErrorKind::Validation,
            401 => ErrorKind::AccountRequired,
            403 => ErrorKind::Authorization,
            404 | 410 => ErrorKind::NotFound,
            408 => ErrorKind::Timeout,
            409 => ErrorKind::Conflict,
            413 => ErrorKind::PayloadTooLarge,
            429 => ErrorKind::RateLimit,
            502..=504 | 529 => ErrorKind::UpstreamUnavailable,
            _ => ErrorKind::ToolExecution,
        };
        let body = refusal.value();
        let find = |expression: &Option<Expression>| {
            let found = expression.as_ref()?.one(&body, &VariableScope::default()).ok()?;
            found.as_str().map(str::to_owned).filter(|words| !words.is_empty())
        };
        let said = find(&self.service.error_expressions.message).or_else(|| words(&refusal.headers, &refusal.body));
        let said = said.map(|said| sanitize(&said, &account.secrets, MESSAGE_CHARS)).filter(|said| !said.is_empty());
        let title = &self.service.title;
        let mut message = format!("{title} returned {status}");
        if let Some(code) = find(&self.service.error_expressions.code) {
            message = format!("{message} ({})", sanitize(&code, &account.secrets, 60));
        }
        if let Some(said) = said {
            message = format!("{message}: {said}");
        }
        let error = Error::new(kind, message);
        match kind {
            ErrorKind::AccountRequired => error.hint(self.service.how_to_connect("Connect it again")),
            ErrorKind::NotFound => {
                error.hint("Find it with a tool that lists or searches. The account may not have access to it.")
            }
            ErrorKind::Validation => error.hint("Correct the arguments as the service says."),
            ErrorKind::Authorization => {
                error.hint(format!("The account with {title} is not allowed to do this, or needs more scopes."))
            }
            ErrorKind::RateLimit | ErrorKind::UpstreamUnavailable => {
                let wait = self.service.retry.rule.after.iter().find_map(|name| wait_in(&refusal.headers, name));
                Error { retry_after: wait, ..error.hint("Try again later.") }
            }
            _ => error,
        }
    }
}

impl ErrorResponse {
    fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Decodes a response body. Returns `None` if it is not the expected JSON or text.
fn decode(headers: &HeaderMap, bytes: Bytes, wanted: ResponseFormat) -> Option<Raw> {
    let text = |bytes: &Bytes| {
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        text.map(|text| Raw::from(text.trim_start_matches('\u{feff}')))
    };
    match wanted {
        ResponseFormat::Auto if media_type(headers) == "application/json" => Raw::parse(bytes).ok(),
        ResponseFormat::Text | ResponseFormat::Auto => text(&bytes),
        ResponseFormat::Multipart => {
            let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            multipart::parts(kind, &bytes).map(|parts| Raw::of(&parts))
        }
        ResponseFormat::Json if bytes.is_empty() => Some(Raw::null()),
        ResponseFormat::Json => Raw::parse(bytes).ok(),
    }
}

//! Readiness. Each part that can make the process unready adds a reason to [`App::unready`]; without reasons it is
//! ready.

use std::time::Duration;

use axum::response::Response;
use hikite_core::json::{Object, Raw};
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};

use crate::app::App;
use crate::error_response::json;

/// Value of `Retry-After`.
pub(crate) const RETRY: Duration = Duration::from_secs(2);

/// A reason for being unready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadyReason {
    /// Stable code for programs.
    pub(crate) code: &'static str,
    /// Text for people; reveals nothing confidential.
    pub(crate) message: String,
}

impl UnreadyReason {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl App {
    /// Returns all reasons; the first one determines the status.
    pub(crate) fn unready(&self) -> Vec<UnreadyReason> {
        let leaving = self.is_leaving().then(|| UnreadyReason::new("leaving", "This process is shutting down."));
        let stale = self.gateway.freshness().fault();
        let store = stale.map(|message| UnreadyReason::new("store_stale", message));
        let full = self.gateway.auditor().state().is_some_and(|state| state.is_full);
        let audit = full.then(|| {
            UnreadyReason::new("audit_full", "The audit log cannot accept more records, so calls are rejected.")
        });
        leaving.into_iter().chain(store).chain(audit).collect()
    }
}

/// Builds the response of `/readyz`. Its `status` is `ready` or the code of the first reason.
pub(crate) fn answer(reasons: &[UnreadyReason]) -> Response {
    let Some(first) = reasons.first() else {
        return json(StatusCode::OK, &Object::default().with("status", "ready").raw());
    };
    let listed: Vec<Raw> = reasons
        .iter()
        .map(|reason| Object::default().with("code", reason.code).with("message", &*reason.message).raw())
        .collect();
    let body = Object::default().with("status", first.code).with("reasons", Raw::array(&listed));
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, &body.raw());
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY.as_secs()));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_reason_is_told_and_the_first_is_the_status() {
        assert_eq!(answer(&[]).status(), StatusCode::OK);
        let reasons = [UnreadyReason::new("leaving", "it stops"), UnreadyReason::new("store_stale", "no answer")];
        let response = answer(&reasons);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["status"], "leaving");
        assert_eq!(body["reasons"][1]["code"], "store_stale");
        assert_eq!(body["reasons"][1]["message"], "no answer");
    }
}

//! The JWKS endpoint: public keys of the token signatures.

use axum::response::{IntoResponse, Response};

use super::answer::{Refusal, document};
use super::desk::Desk;

pub(crate) async fn jwks(desk: Desk) -> Response {
    match desk.identity.key_set().await {
        Ok(keys) => document(&keys),
        Err(error) => Refusal::from(error).into_response(),
    }
}

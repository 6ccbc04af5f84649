//! The JWKS endpoint: public keys of the token signatures.

use axum::response::{IntoResponse, Response};

use super::context::OauthContext;
use super::response::{OauthError, document};

pub(crate) async fn jwks(context: OauthContext) -> Response {
    match context.identity.keys().document().await {
        Ok(keys) => document(&keys),
        Err(error) => OauthError::from(error).into_response(),
    }
}

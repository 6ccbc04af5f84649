//! Client ID metadata documents. Their URLs are chosen by strangers, so they are fetched only with the guarded client,
//! rarely, with a short timeout and a small size limit, and without following redirects.

use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::rate::Rate;
use hikite_egress::RequestBody;
use hikite_identity::{ClientRecord, RedirectUri};
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::client;
use super::context::OauthContext;

const BODY_BYTES_MAX: usize = 64 * 1024;
const TIMEOUT: Duration = Duration::from_secs(5);
/// Age up to which a fetched document is not fetched again.
const CACHE_AGE: Duration = Duration::from_secs(600);
/// Fetches allowed per address.
const RATE: Rate = Rate { count: 30, per: Duration::from_secs(60) };

pub(crate) async fn client(context: &OauthContext, id: &str) -> Result<ClientRecord, Error> {
    if !is_client_url(id) {
        return Err(bad("its id is not the address of a metadata document"));
    }
    if let Some(cached) = context.identity.clients().get(id).await?.filter(|cached| cached.is_fresh(CACHE_AGE)) {
        return Ok(cached);
    }
    if let Some(peer) = context.peer {
        let taken = context.app.attempt_limits.lookups.take(&peer, RATE, context.app.started.elapsed()).0;
        taken.map_err(|wait| Error::new(ErrorKind::RateLimit, "Too many clients were looked up.").after(wait))?;
    }
    let document = tokio::time::timeout(TIMEOUT, fetch(context, id)).await;
    let document = document.map_err(|_| bad("its metadata did not arrive in time"))??;
    if document["client_id"].as_str() != Some(id) {
        return Err(bad("its metadata belongs to another client"));
    }
    let form = client::read(&document, false).map_err(|_| bad("its metadata does not describe a supported client"))?;
    if form.confidential || !document["client_secret"].is_null() {
        return Err(bad("a client with public metadata cannot have a secret"));
    }
    Ok(ClientRecord::described(id, form.name, form.redirect_uris).looked_up())
}

async fn fetch(context: &OauthContext, id: &str) -> Result<serde_json::Value, Error> {
    let request = http::Request::get(id).header(ACCEPT, "application/json").body(RequestBody::new(Bytes::new()));
    let request = request.map_err(|_| bad("its id is not a valid address"))?;
    let answer = context
        .oauth
        .client
        .send(request)
        .await
        .map_err(|error| bad("its metadata cannot be read").because(error.to_string()))?;
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json");
    if answer.status() != StatusCode::OK || !is_json {
        return Err(bad("there is no metadata at its address"));
    }
    let body = hikite_egress::read(answer.into_body(), BODY_BYTES_MAX).await;
    let body = body.map_err(|_| bad("its metadata cannot be read"))?;
    serde_json::from_slice(&body).map_err(|_| bad("its metadata is not JSON"))
}

/// Returns `true` for an `https` URL with a path, in normalised spelling.
fn is_client_url(id: &str) -> bool {
    let path = id.strip_prefix("https://").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    let plain = |path: &str| path.len() > 1 && !path.split('/').any(|part| matches!(part, "." | ".."));
    RedirectUri::read(id).is_ok() && path.is_some_and(plain)
}

fn bad(why: &'static str) -> Error {
    Error::new(ErrorKind::Validation, format!("This client is unknown: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_whole_address_with_a_path() {
        assert!(is_client_url("https://app.example/client.json"));
        for wrong in [
            "https://app.example",
            "https://app.example/",
            "https://app.example/a/../b",
            "https://app.example/./a",
            "https://user@app.example/a",
            "https://app.example/a#b",
            "http://127.0.0.1/client.json",
            "https:///a",
        ] {
            assert!(!is_client_url(wrong), "{wrong}");
        }
    }
}

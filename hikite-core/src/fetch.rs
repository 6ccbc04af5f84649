//! Fetches JSON documents of OAuth issuers and calls their endpoints. The trust in an address decides which networks a
//! request may reach.

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::BoxFuture;

/// Trust in an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressTrust {
    /// The config names the address or its host: any network is allowed.
    Configured,
    /// A fetched document names the address: only the public internet is allowed.
    Untrusted,
}

pub trait DocumentFetcher: Send + Sync + fmt::Debug {
    /// Fetches a JSON document. Fails if there is none or it is not JSON.
    fn get<'a>(&'a self, url: &'a str, trust: AddressTrust) -> BoxFuture<'a, Result<Value, Error>>;

    /// Posts a form and returns the response, whatever its status.
    fn post<'a>(
        &'a self,
        url: &'a str,
        trust: AddressTrust,
        form: FormBody,
    ) -> BoxFuture<'a, Result<FetchResponse, Error>>;
}

#[derive(Clone, Debug, Default)]
pub struct FormBody {
    pub fields: Vec<(&'static str, Secret)>,
    /// Client id and secret for HTTP Basic authentication.
    pub basic: Option<(String, Secret)>,
}

/// Response of an endpoint. `Debug` omits the body, which may hold secrets.
#[derive(Clone)]
pub struct FetchResponse {
    pub status: u16,
    pub body: Value,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

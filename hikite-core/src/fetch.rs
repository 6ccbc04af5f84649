//! Fetches JSON documents of OAuth issuers and calls their endpoints. The trust in an address decides which networks a
//! request may reach.

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::BoxFuture;

/// Trust in an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The config names the address or its host: any network is allowed.
    Owner,
    /// A fetched document names the address: only the public internet is allowed.
    Stranger,
}

pub trait Fetch: Send + Sync + fmt::Debug {
    /// Fetches a JSON document. Fails if there is none or it is not JSON.
    fn get<'a>(&'a self, url: &'a str, word: Word) -> BoxFuture<'a, Result<Value, Error>>;

    /// Posts a form and returns the response, whatever its status.
    fn post<'a>(&'a self, url: &'a str, word: Word, form: Form) -> BoxFuture<'a, Result<Reply, Error>>;
}

#[derive(Clone, Debug, Default)]
pub struct Form {
    pub fields: Vec<(&'static str, Secret)>,
    /// Client id and secret for HTTP Basic authentication.
    pub basic: Option<(String, Secret)>,
}

/// Response of an endpoint. `Debug` omits the body, which may hold secrets.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub body: Value,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

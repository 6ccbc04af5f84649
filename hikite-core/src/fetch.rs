//! Documents of issuers and answers of their endpoints, as whoever decides sees them: an address in, JSON out. Whose word
//! the address is says how far the request may go.

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::BoxFuture;

/// Whose word an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The config names it, or its host: it may lead anywhere.
    Owner,
    /// A document names it: it may lead to the public internet alone.
    Stranger,
}

pub trait Fetch: Send + Sync + fmt::Debug {
    /// The document at an address. An error if there is none, or it is no JSON.
    fn get<'a>(&'a self, url: &'a str, word: Word) -> BoxFuture<'a, Result<Value, Error>>;

    /// What an endpoint answers to a form, whatever its status.
    fn post<'a>(&'a self, url: &'a str, word: Word, form: Form) -> BoxFuture<'a, Result<Reply, Error>>;
}

#[derive(Clone, Debug, Default)]
pub struct Form {
    pub fields: Vec<(&'static str, Secret)>,
    /// Who we are, in the header.
    pub basic: Option<(String, Secret)>,
}

/// Its body may hold secrets.
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

//! Search with the help of others, as the gateway sees it: whoever chooses tools, makes vectors or puts results in
//! order behind an address that a person configured. Each may fail at any time; search then goes on without it.

use std::fmt;
use std::sync::Arc;

use super::encoder::Vector;
use crate::key::ToolKey;
use crate::source::BoxFuture;

/// A tool that the one who asks may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub key: ToolKey,
    pub name: Arc<str>,
    pub module: Arc<str>,
    pub description: String,
}

/// A tool that was chosen, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub key: ToolKey,
    /// 0 to 1.
    pub relevance: f64,
    pub explanation: Option<String>,
}

/// What is asked of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub queries: &'a [String],
    pub context: Option<&'a str>,
    pub tools: &'a [Available],
    pub limit: usize,
}

/// Chooses tools among those it is given.
pub trait SearchProvider: Send + Sync + fmt::Debug {
    /// The best first; only tools of the request.
    fn search<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Chosen>, Trouble>>;
}

/// Makes vectors somewhere else.
pub trait Embedder: Send + Sync + fmt::Debug {
    /// A name that changes when the vectors do.
    fn model(&self) -> &str;

    /// One vector for each text.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vector>, Trouble>>;
}

/// Puts documents in the order in which they answer a query.
pub trait Reranker: Send + Sync + fmt::Debug {
    /// Places of documents with their relevance, 0 to 1, the best first. Some may be left out.
    fn rerank<'a>(
        &'a self,
        query: &'a str,
        documents: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, f64)>, Trouble>>;
}

/// Why there is no help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("it does not answer in time")]
    Timeout,
    #[error("it cannot be reached")]
    Unreachable,
    #[error("it refuses the credentials")]
    Refused,
    #[error("it answers with an error")]
    Failed,
    #[error("its answer cannot be understood")]
    Unreadable,
}

impl Trouble {
    /// How the answer of a search names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unreadable => "unreadable",
        }
    }
}

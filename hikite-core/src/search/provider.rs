//! Interfaces of external search services: providers that choose tools, embedders and rerankers at configured
//! addresses. Each may fail at any time; search then continues without it.

use std::fmt;
use std::sync::Arc;

use super::encoder::Vector;
use crate::key::ToolKey;
use crate::source::BoxFuture;

/// A tool that the caller may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableTool {
    pub key: ToolKey,
    pub name: Arc<str>,
    pub module: Arc<str>,
    pub description: String,
}

/// A tool chosen by a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedTool {
    pub key: ToolKey,
    /// 0 to 1.
    pub relevance: f64,
    pub explanation: Option<String>,
}

/// Request to a search provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderRequest<'a> {
    pub queries: &'a [String],
    pub context: Option<&'a str>,
    pub tools: &'a [AvailableTool],
    pub limit: usize,
}

/// Chooses tools from a list.
pub trait SearchProvider: Send + Sync + fmt::Debug {
    /// Returns tools of the request, best first.
    fn search<'a>(&'a self, request: ProviderRequest<'a>) -> BoxFuture<'a, Result<Vec<RankedTool>, ProviderFailure>>;
}

/// Computes vectors remotely.
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns a name that changes whenever the vectors do.
    fn model(&self) -> &str;

    /// Returns one vector per text.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vector>, ProviderFailure>>;
}

/// Orders documents by relevance to a query.
pub trait Reranker: Send + Sync + fmt::Debug {
    /// Returns document indexes with their relevance from 0 to 1, best first. Some may be left out.
    fn rerank<'a>(
        &'a self,
        query: &'a str,
        documents: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, f64)>, ProviderFailure>>;
}

/// Reason why an external search service gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFailure {
    #[error("it does not respond in time")]
    Timeout,
    #[error("it cannot be reached")]
    Unreachable,
    #[error("it rejects the credentials")]
    Refused,
    #[error("it returned an error")]
    Failed,
    #[error("its response cannot be read")]
    Unreadable,
}

impl ProviderFailure {
    /// Returns the identifier used in search responses.
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

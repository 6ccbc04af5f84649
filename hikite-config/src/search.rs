//! The `search` section: search provider, external models and search memory.

use std::time::Duration;

use hikite_core::secret::Secret;
use hikite_gateway::{MemorySettings, Strategy};
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::secret::join;
use super::unit::ConfigDuration;
use super::{secret, url};

/// How tools are found by what they do.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Search")]
pub(crate) struct SearchFile {
    /// The search provider of projects that set none.
    #[schemars(extend("default" = "hybrid"))]
    pub(crate) provider: Option<ProviderWord>,
    /// The Search API for the provider `cloud`. Where it fails, `hybrid` answers.
    pub(crate) cloud: Option<CloudFile>,
    /// A model that makes vectors, in place of the built-in one; where it fails, that answers.
    pub(crate) embedding: Option<EmbeddingFile>,
    /// A model that puts the best results in order.
    pub(crate) rerank: Option<RerankFile>,
    /// Memory of queries that led to a successful call.
    pub(crate) memory: Option<MemoryFile>,
}

/// The search provider.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "SearchProvider")]
pub(crate) enum ProviderWord {
    /// Words alone, on this machine.
    Bm25,
    /// Words and meaning, on this machine.
    Hybrid,
    /// Whoever `search.cloud` names; it is sent the names and descriptions of the caller's tools.
    Cloud,
}

/// A Search API: `/catalog/search` is appended to its address. Another hikite serves it, too.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SearchCloud")]
pub(crate) struct CloudFile {
    /// Its address.
    pub(crate) url: Option<String>,
    /// Sent as a bearer.
    pub(crate) token: Option<String>,
    /// A file that holds it.
    #[serde(rename = "tokenFile")]
    pub(crate) token_file: Option<String>,
    /// For it to answer.
    #[schemars(extend("default" = "5s"))]
    pub(crate) timeout: Option<ConfigDuration>,
}

/// A model behind an OpenAI-compatible address, to which `/embeddings` is appended.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SearchEmbedding")]
pub(crate) struct EmbeddingFile {
    /// Its address, like `https://api.example/v1`.
    pub(crate) url: Option<String>,
    /// The name of the model.
    pub(crate) model: Option<String>,
    /// Sent as a bearer.
    pub(crate) key: Option<String>,
    /// A file that holds it.
    #[serde(rename = "keyFile")]
    pub(crate) key_file: Option<String>,
    /// How many numbers a vector shall have, for models that can be asked.
    pub(crate) dimensions: Option<u32>,
    /// For it to answer.
    #[schemars(extend("default" = "5s"))]
    pub(crate) timeout: Option<ConfigDuration>,
}

/// A model behind an address to which `/rerank` is appended.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SearchRerank")]
pub(crate) struct RerankFile {
    /// Its address, like `https://api.example/v1`.
    pub(crate) url: Option<String>,
    /// The name of the model.
    pub(crate) model: Option<String>,
    /// Sent as a bearer.
    pub(crate) key: Option<String>,
    /// A file that holds it.
    #[serde(rename = "keyFile")]
    pub(crate) key_file: Option<String>,
    /// With how many of the best results it is asked.
    #[schemars(extend("default" = 30))]
    pub(crate) top: Option<u32>,
    /// For it to answer.
    #[schemars(extend("default" = "5s"))]
    pub(crate) timeout: Option<ConfigDuration>,
}

/// Memory of queries that led to a successful call.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SearchMemory")]
pub(crate) struct MemoryFile {
    /// Remembers queries if true.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// Stores the queries themselves. Otherwise only hashes of their words and their vectors are stored.
    #[schemars(extend("default" = false))]
    pub(crate) text: Option<bool>,
    /// After so long a success counts half.
    #[schemars(extend("default" = "30d"))]
    pub(crate) half_life: Option<ConfigDuration>,
    /// Pairs of question and tool that one project may hold.
    #[schemars(extend("default" = 2000))]
    pub(crate) pairs: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchSection {
    pub provider: Strategy,
    pub cloud: Option<SearchServiceConfig>,
    pub embedding: Option<(SearchServiceConfig, SearchModel)>,
    pub rerank: Option<(SearchServiceConfig, SearchModel)>,
    pub memory: MemorySettings,
}

/// Endpoint of a search API or model. `url` is complete; its display is as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchServiceConfig {
    pub url: Secret,
    pub token: Option<Secret>,
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchModel {
    pub name: String,
    /// Dimensions of an embedding, or number of results to rerank.
    pub count: Option<usize>,
}

const TIMEOUT: Duration = Duration::from_secs(5);
pub const TOP: usize = 30;
const TOP_MAX: u32 = 200;
const PAIRS_MAX: u32 = 20_000;

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &SearchFile) -> SearchSection {
    let provider = match raw.provider {
        Some(ProviderWord::Bm25) => Strategy::Bm25,
        Some(ProviderWord::Cloud) => Strategy::Cloud,
        Some(ProviderWord::Hybrid) | None => Strategy::Hybrid,
    };
    let cloud = raw.cloud.as_ref().and_then(|raw| {
        let token = CredentialSetting {
            key: "token",
            file: "tokenFile",
            values: (raw.token.as_deref(), raw.token_file.as_deref()),
        };
        place(check, &path.key("cloud"), (raw.url.as_deref(), "catalog/search"), &token, raw.timeout.as_ref())
    });
    if provider == Strategy::Cloud && raw.cloud.is_none() {
        let hint = "Set its address: `\"cloud\": { \"url\": \"https://…\" }`.";
        check.report.error(
            &path.key("provider"),
            "`cloud` is selected, but there is no `search.cloud`",
            Some(hint.into()),
        );
    }
    let embedding = raw.embedding.as_ref().and_then(|raw| {
        let path = path.key("embedding");
        let token =
            CredentialSetting { key: "key", file: "keyFile", values: (raw.key.as_deref(), raw.key_file.as_deref()) };
        let place = place(check, &path, (raw.url.as_deref(), "embeddings"), &token, raw.timeout.as_ref());
        let name = model(check, &path, raw.model.as_deref());
        let count = raw.dimensions.map(|count| count as usize);
        Some((place?, SearchModel { name: name?, count }))
    });
    let rerank = raw.rerank.as_ref().and_then(|raw| {
        let path = path.key("rerank");
        let token =
            CredentialSetting { key: "key", file: "keyFile", values: (raw.key.as_deref(), raw.key_file.as_deref()) };
        let place = place(check, &path, (raw.url.as_deref(), "rerank"), &token, raw.timeout.as_ref());
        let name = model(check, &path, raw.model.as_deref());
        let top = within(check, &path.key("top"), raw.top, 2..=TOP_MAX).unwrap_or(TOP);
        Some((place?, SearchModel { name: name?, count: Some(top) }))
    });
    let memory = memory(check, &path.key("memory"), &raw.memory.clone().unwrap_or_default());
    SearchSection { provider, cloud, embedding, rerank, memory }
}

/// A credential, given inline or in a file.
struct CredentialSetting<'a> {
    key: &'static str,
    file: &'static str,
    values: (Option<&'a str>, Option<&'a str>),
}

fn place(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    (written, call): (Option<&str>, &str),
    token: &CredentialSetting<'_>,
    timeout: Option<&ConfigDuration>,
) -> Option<SearchServiceConfig> {
    let token = credential(check, path, token);
    let timeout = span(check, &path.key("timeout"), timeout);
    let Some(written) = written else {
        check.report.missing(path, "`url` is missing", None);
        return None;
    };
    let expanded = check.expand(&path.key("url"), written)?;
    if let Some((fault, hint)) = url::fault(&expanded) {
        return check.fail(&path.key("url"), format!("`{}` {fault}", url::without_secrets(written)), hint);
    }
    if expanded.contains(['?', '#']) {
        let hint = "A path is appended to it; put credentials in the key next to it.";
        return check.fail(&path.key("url"), "the address contains a query".into(), hint);
    }
    let url = join(&secret::url(written, expanded), call);
    Some(SearchServiceConfig { url, token, timeout: timeout.unwrap_or(TIMEOUT) })
}

fn credential(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    written: &CredentialSetting<'_>,
) -> Option<Secret> {
    let (key, text) = match written.values {
        (Some(_), Some(_)) => {
            let message = format!("both `{}` and `{}` are given", written.key, written.file);
            check.report.error_in_name(&path.key(written.file), message, Some("Keep one of them.".into()));
            return None;
        }
        (Some(text), None) => (written.key, check.expand(&path.key(written.key), text)?),
        (None, Some(file)) => (written.file, check.secret_file(&path.key(written.file), file)?),
        (None, None) => return None,
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let hint = "Write it without spaces and line breaks.";
        return check.fail(&path.key(key), "a credential must not be empty or contain spaces".into(), hint);
    }
    Some(Secret::hidden(text))
}

fn model(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, written: Option<&str>) -> Option<String> {
    match written {
        Some(written) => check.expand(&path.key("model"), written).filter(|name| !name.is_empty()),
        None => {
            check.report.missing(path, "`model` is missing", None);
            None
        }
    }
}

fn memory(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &MemoryFile) -> MemorySettings {
    let usual = MemorySettings::default();
    let pairs = within(check, &path.key("pairs"), raw.pairs, 1..=PAIRS_MAX);
    MemorySettings {
        enabled: raw.enabled.unwrap_or(usual.enabled),
        text: raw.text.unwrap_or(usual.text),
        half_life: span(check, &path.key("half_life"), raw.half_life.as_ref()).unwrap_or(usual.half_life),
        pairs: pairs.unwrap_or(usual.pairs),
    }
}

fn within(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    written: Option<u32>,
    range: std::ops::RangeInclusive<u32>,
) -> Option<usize> {
    let count = written?;
    if range.contains(&count) {
        return Some(count as usize);
    }
    let hint = format!("Write a number from {} to {}.", range.start(), range.end());
    check.fail(path, format!("`{count}` is out of range"), hint)
}

fn span(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    written: Option<&ConfigDuration>,
) -> Option<Duration> {
    let read = written?.read();
    let read = read.map_err(|(message, hint)| (message, hint.to_owned())).and_then(|span| {
        let hint = || ("is too short".to_owned(), "Leave it out for the default.".to_owned());
        (span >= Duration::from_millis(10)).then_some(span).ok_or_else(hint)
    });
    read.map_or_else(|(message, hint)| check.fail(path, message, hint), Some)
}

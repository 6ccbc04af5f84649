//! Account of a call: its credential, and the base URL derived from it. If an account has several sites, the call
//! selects one.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::credential::{AuthScheme, Credential};
use hikite_core::error::{Error, ErrorKind};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::rate_limiter::RateLimiter;
use crate::escape;
use crate::expression::{Expression, ExpressionNames};
use crate::file::{BaseUrl, SiteLookupFile};
use crate::scope::VariableScope;

/// Cache lifetime of site lookups.
const CACHE_LIFETIME: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
pub(crate) struct CallAccount {
    pub(crate) credential: Option<Arc<Credential>>,
    /// Base URL of request paths.
    pub(crate) base: String,
    /// Secrets that no message may repeat.
    pub(crate) secrets: Vec<Box<str>>,
    /// Rate limit of this account.
    pub(crate) rate_limiter: Arc<RateLimiter>,
}

/// Base URLs of a service.
#[derive(Debug)]
pub(crate) struct BaseUrls {
    base: BaseUrl,
    /// Lookups of values that the base URL needs and the credential may lack.
    pub(crate) lookups: Vec<SiteLookup>,
}

#[derive(Debug)]
pub(crate) struct SiteLookup {
    pub(crate) name: String,
    /// Scheme and host.
    pub(crate) at: String,
    pub(crate) path: String,
    rows: Expression,
    label: Expression,
    value: Expression,
    hasher: RandomState,
    /// Cached sites by credential hash.
    known: Mutex<HashMap<u64, CachedSites>>,
}

#[derive(Clone, Debug)]
struct CachedSites {
    since: Instant,
    sites: Arc<Vec<AccountSite>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountSite {
    pub(crate) label: String,
    value: String,
}

impl BaseUrls {
    pub(crate) fn new<'a>(
        base: BaseUrl,
        resolve: impl Iterator<Item = (&'a str, &'a SiteLookupFile)>,
        names: &ExpressionNames,
    ) -> Result<Self, String> {
        let written = match &base {
            BaseUrl::One(one) => vec![one],
            BaseUrl::By { bearer, basic } => bearer.iter().chain(basic).collect(),
        };
        let is_address = |text: &&String| text.starts_with("https://") || text.starts_with("http://");
        if written.is_empty() || !written.iter().all(is_address) {
            return Err("`base` must be an address: `https://…`".into());
        }
        let lookups = resolve.map(|(name, rule)| SiteLookup {
            name: name.to_owned(),
            at: rule.at.clone(),
            path: rule.get.clone(),
            rows: Expression::new(&rule.rows, names),
            label: Expression::new(&rule.name, names),
            value: Expression::new(&rule.value, names),
            hasher: RandomState::new(),
            known: Mutex::default(),
        });
        Ok(Self { base, lookups: lookups.collect() })
    }

    /// Returns the base URL template for a credential.
    pub(crate) fn base(&self, credential: Option<&Credential>) -> Result<&str, Error> {
        let base = match (&self.base, credential.map(|credential| credential.scheme)) {
            (BaseUrl::One(base), _) => Some(base),
            (BaseUrl::By { bearer, basic }, None) => bearer.as_ref().or(basic.as_ref()),
            (BaseUrl::By { bearer, .. }, Some(AuthScheme::Bearer)) => bearer.as_ref(),
            (BaseUrl::By { basic, .. }, Some(AuthScheme::Basic)) => basic.as_ref(),
        };
        base.map(String::as_str).ok_or_else(|| {
            Error::new(ErrorKind::AccountRequired, "This service needs another kind of credential.")
                .hint("Use a token, or `email` and `token`, as the documentation of the module says.")
        })
    }
}

/// Replaces the service's host with the configured API address.
pub(crate) fn with_api_host(base: &str, api: Option<&str>) -> String {
    let Some(api) = api else { return base.trim_end_matches('/').to_owned() };
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    format!("{}{}", api.trim_end_matches('/'), path.trim_end_matches('/'))
}

/// Fills the placeholders of a base URL: host characters only in the host, one escaped segment in the path.
pub(crate) fn fill_base(base: &str, find: impl Fn(&str) -> Option<String>) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = base;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        out.push_str(text);
        let value = find(name).ok_or_else(|| {
            Error::new(ErrorKind::AccountRequired, format!("The account has no `{name}`."))
                .hint(format!("Set `{name}` in addition to the token."))
        })?;
        let in_host = out.split_once("://").is_some_and(|(_, host)| !host.contains('/'));
        let may_be_host = |value: &str| {
            !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte))
        };
        if in_host && !may_be_host(&value) {
            return Err(Error::new(ErrorKind::Validation, format!("The `{name}` of the account is not a valid host.")));
        }
        if in_host {
            out.push_str(&value);
        } else {
            escape::value(&value, &mut out);
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

impl SiteLookup {
    /// Returns the cached sites of an account, unless expired.
    pub(crate) fn known(&self, credential: &Credential) -> Option<Arc<Vec<AccountSite>>> {
        let known = self.known.lock();
        let CachedSites { since, sites } = known.get(&self.key(credential))?;
        (since.elapsed() < CACHE_LIFETIME).then(|| Arc::clone(sites))
    }

    /// Parses the service's response and caches the sites.
    pub(crate) fn read(&self, credential: &Credential, answer: &Value) -> Result<Arc<Vec<AccountSite>>, Error> {
        let scope = VariableScope::default();
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut sites = Vec::new();
        for row in self.rows.each(answer, &scope)? {
            let site =
                AccountSite { label: text(self.label.one(&row, &scope)?), value: text(self.value.one(&row, &scope)?) };
            // A site is listed once per product.
            if !sites.contains(&site) {
                sites.push(site);
            }
        }
        let sites = Arc::new(sites);
        let mut known = self.known.lock();
        known.retain(|_, known| known.since.elapsed() < CACHE_LIFETIME);
        known.insert(self.key(credential), CachedSites { since: Instant::now(), sites: Arc::clone(&sites) });
        Ok(sites)
    }

    fn key(&self, credential: &Credential) -> u64 {
        self.hasher.hash_one(credential.secret.expose())
    }

    pub(crate) fn expressions(&self) -> [&Expression; 3] {
        [&self.rows, &self.label, &self.value]
    }
}

/// Returns the selected site. Without a selection there must be exactly one.
pub(crate) fn select_site<'a>(sites: &'a [AccountSite], wanted: Option<&str>) -> Result<&'a str, Error> {
    let labels = || sites.iter().map(|site| format!("`{}`", site.label)).collect::<Vec<_>>().join(", ");
    let is_wanted = |site: &&AccountSite, wanted: &str| {
        let (label, wanted) = (site.label.to_lowercase(), wanted.to_lowercase());
        let wanted = wanted.trim_start_matches("https://").trim_end_matches('/');
        label == wanted || label.split('.').next() == Some(wanted) || site.value == wanted
    };
    let found = match wanted {
        Some(wanted) => sites.iter().find(|site| is_wanted(site, wanted)),
        None => sites.first().filter(|_| sites.len() == 1),
    };
    found.map(|site| site.value.as_str()).ok_or_else(|| match (sites, wanted) {
        ([], _) => Error::new(ErrorKind::AccountRequired, "The account has access to no site.")
            .hint("Connect it again and allow access to a site."),
        (_, Some(wanted)) => Error::new(ErrorKind::Validation, format!("The account has no site `{wanted}`."))
            .hint(format!("Available sites: {}.", labels())),
        (_, None) => Error::new(ErrorKind::Validation, "The account has several sites.")
            .hint(format!("Choose one with `site`: {}.", labels())),
    })
}

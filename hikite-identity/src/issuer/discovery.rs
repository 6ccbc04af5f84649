//! Issuer metadata from the well-known locations (`OpenID` Connect Discovery, RFC 8414). A document is rejected
//! unless its `issuer` equals the issuer that was requested.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::fetch::{AddressTrust, DocumentFetcher};
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct IssuerMetadata {
    issuer: String,
    document: Value,
}

impl IssuerMetadata {
    pub(crate) async fn read(fetch: &dyn DocumentFetcher, issuer: &str) -> Result<Self, Error> {
        let mut first_error = None;
        for place in metadata_urls(issuer) {
            let document = match fetch.get(&place, AddressTrust::Configured).await {
                Ok(document) => document,
                Err(error) => {
                    first_error.get_or_insert(error);
                    continue;
                }
            };
            if document["issuer"] != issuer {
                let error = Error::new(
                    ErrorKind::UpstreamUnavailable,
                    format!("{place} describes an issuer other than `{issuer}`."),
                );
                return Err(error.hint("Write the issuer exactly as in its own metadata document."));
            }
            return Ok(Self { issuer: issuer.to_owned(), document });
        }
        Err(first_error.unwrap_or_else(|| {
            Error::new(ErrorKind::UpstreamUnavailable, format!("`{issuer}` is not a valid address."))
        }))
    }

    /// Returns a URL from the document, and how far to trust it: a URL on the issuer's own origin counts as
    /// configured by the administrator, any other as named by a stranger.
    pub(crate) fn address(&self, name: &str) -> Result<(String, AddressTrust), Error> {
        let lacks = || {
            Error::new(ErrorKind::UpstreamUnavailable, format!("The metadata of `{}` has no `{name}`.", self.issuer))
        };
        let url = self.document[name].as_str().ok_or_else(lacks)?;
        if origin(url).is_some() && origin(url) == origin(&self.issuer) {
            return Ok((url.to_owned(), AddressTrust::Configured));
        }
        if url.starts_with("https://") {
            return Ok((url.to_owned(), AddressTrust::Untrusted));
        }
        Err(Error::new(ErrorKind::UpstreamUnavailable, format!("The `{name}` of `{}` is not https.", self.issuer)))
    }

    /// Returns `true` if an array of the document contains `word`; a missing array yields the standard's default.
    pub(crate) fn supports(&self, name: &str, word: &str, default: bool) -> bool {
        self.document[name].as_array().map_or(default, |all| all.iter().any(|one| one == word))
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.document[name] == true
    }
}

/// Returns the scheme, host and port of a URL.
fn origin(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    Some(&url[..scheme.len() + 3 + end])
}

fn metadata_urls(issuer: &str) -> Vec<String> {
    let Some(origin) = origin(issuer) else { return Vec::new() };
    let path = issuer[origin.len()..].trim_end_matches('/');
    vec![
        format!("{origin}{path}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_lie_where_the_standards_say() {
        let expected = [
            "https://i.example/a/b/.well-known/openid-configuration",
            "https://i.example/.well-known/oauth-authorization-server/a/b",
        ];
        assert_eq!(metadata_urls("https://i.example/a/b"), expected);
        assert_eq!(metadata_urls("https://i.example/")[0], "https://i.example/.well-known/openid-configuration");
        assert!(metadata_urls("i.example").is_empty());
    }
}

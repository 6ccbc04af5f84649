//! Masks commands and URLs that may contain secrets.

use hikite_core::secret::{MASK, Secret};

/// Returns the arguments of a command; their display masks the values of flags that look like credentials.
pub(crate) fn arguments(written: &[String], expanded: Vec<String>) -> Vec<Secret> {
    let mut value_follows = false;
    let shown = written.iter().map(|argument| {
        let follows = std::mem::replace(&mut value_follows, false);
        match argument.split_once('=') {
            Some((flag, _)) if is_credential(flag) => format!("{flag}={MASK}"),
            _ if follows && !argument.starts_with('-') => MASK.to_owned(),
            _ => {
                value_follows = argument.starts_with('-') && is_credential(argument);
                argument.clone()
            }
        }
    });
    expanded.into_iter().zip(shown).map(|(text, shown)| Secret::shown_as(text, shown)).collect()
}

/// Returns a URL whose display masks the values of its query.
pub(crate) fn url(written: &str, expanded: String) -> Secret {
    let Some((front, query)) = written.split_once('?') else { return Secret::shown_as(expanded, written) };
    let query = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None => MASK.to_owned(),
    });
    let shown = format!("{front}?{}", query.collect::<Vec<_>>().join("&"));
    Secret::shown_as(expanded, shown)
}

/// Returns the masked form of a URL without variables.
pub fn masked_url(written: &str) -> String {
    url(written, String::new()).to_string()
}

/// Returns `true` if a name looks like that of a credential.
pub(crate) fn is_credential(flag: &str) -> bool {
    let flag = flag.to_ascii_lowercase();
    ["key", "token", "secret", "password", "passwd", "auth", "header", "credential"].iter().any(|w| flag.contains(w))
}

/// Returns the endpoint of one signal below the collector's.
pub(crate) fn join(endpoint: &Secret, signal: &str) -> Secret {
    let below = |text: &str| format!("{}/{signal}", text.trim_end_matches('/'));
    Secret::shown_as(below(endpoint.expose()), below(&endpoint.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_sound_like_credentials_hide_their_values() {
        let written: Vec<String> =
            ["-y", "x", "--api-key", "k", "--token=t", "API_KEY=v", "--header", "Authorization: Bearer b", "${A}"]
                .map(Into::into)
                .into();
        let shown = arguments(&written, written.clone()).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown, ["-y", "x", "--api-key", "***", "--token=***", "API_KEY=***", "--header", "***", "${A}"]);
    }

    #[test]
    fn the_query_of_an_address_is_hidden() {
        let address = url("https://x/mcp?key=1&b", "https://x/mcp?key=1&b".into());
        assert_eq!(address.to_string(), "https://x/mcp?key=***&***");
    }
}

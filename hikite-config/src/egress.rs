//! The `egress` section: destinations of requests to addresses that no administrator configured.

use hikite_egress::{AllowList, AllowedAddress, MinTls};
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::tls::VersionWord;

/// Where requests may go whose address did not come from this file: those of tools that were registered over the
/// network or from the terminal. Addresses in this file are the owner's word and always allowed.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Egress")]
pub(crate) struct EgressFile {
    /// Destinations allowed beside the public internet: addresses, blocks like `10.0.0.0/8`, and host names.
    pub(crate) allow: Option<Vec<String>>,
    /// The oldest version of TLS that is spoken with servers, whoever named their address.
    #[schemars(extend("default" = "1.3"))]
    pub(crate) min_tls: Option<VersionWord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressSection {
    /// Entries as written, with variables expanded.
    pub allow: Vec<String>,
    pub min_tls: MinTls,
}

impl EgressSection {
    pub fn rules(&self) -> AllowList {
        AllowList::of(self.allow.iter().filter_map(|text| AllowedAddress::parse(text)))
    }
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &EgressFile) -> EgressSection {
    let list = path.key("allow");
    let written = raw.allow.as_deref().unwrap_or_default().iter().enumerate();
    let allow = written.filter_map(|(index, text)| {
        let path = list.index(index);
        let text = check.expand(&path, text)?;
        if AllowedAddress::parse(&text).is_none() {
            let hint = "Write `127.0.0.1`, `10.0.0.0/8` or `internal.example`.";
            return check.fail(&path, format!("`{text}` is not an address, an address block or a host name"), hint);
        }
        Some(text)
    });
    EgressSection { allow: allow.collect(), min_tls: raw.min_tls.map_or_else(MinTls::default, Into::into) }
}

//! The master key of the vault: where the owner keeps it, and how it comes to us.

use anyhow::{Context, Result};
use hikite_core::secret::Secret;
use hikite_vault::{MasterKey, Ring};

use crate::config::Config;
use crate::token;

/// In the data folder, where no other place is named.
const FILE: &str = "vault.key";

/// The keys of the vault; made at the first start.
pub(crate) fn ring(config: &Config) -> Result<Ring> {
    token::make_folder(&config.data)?;
    let path = config.data.join(FILE);
    let text = token::private(&path, || Ok(MasterKey::random()?.text()))?;
    let key = parse(&text).with_context(|| format!("`{}` holds no key of the vault", path.display()))?;
    Ok(Ring::new(key, Vec::new()))
}

fn parse(text: &Secret) -> Result<MasterKey> {
    Ok(MasterKey::parse(text.expose())?)
}

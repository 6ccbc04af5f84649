//! Approving and blocking tools. Every decision is written to the store first and published afterwards.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::pin::{self, Pinning};
use hikite_store::PinRow;

use super::object::resolve;
use super::{PinAdmin, record};
use crate::pin::ToolPin;
use hikite_store::clock::now_ms;

impl PinAdmin {
    /// Approves the definition with this hash, if the server still offers it: only a definition that was reviewed can
    /// be approved.
    pub async fn approve(&self, name: &str, hash: &str) -> Result<Raw, Error> {
        let key = self.catalogs.with_pins(|pin_store| resolve(pin_store, name))?;
        self.approve_all(&[(key.clone(), hash.into())]).await?;
        self.get(&key.to_string()).await
    }

    /// Approves several definitions. Stops at the first failure; earlier approvals stay.
    pub async fn approve_all(&self, chosen: &[(ToolKey, Arc<str>)]) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        self.persist().await?;
        let mut decided = Vec::new();
        let mut outcome = Ok(());
        for (key, hash) in chosen {
            match self.approve_one(key, hash).await {
                Ok(pin) => decided.push((key.clone(), pin)),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.catalogs.change_pins(|pin_store| pin_store.set(decided));
        outcome
    }

    /// Holds tools back until an administrator approves them.
    pub async fn block_all(&self, names: &[String]) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        self.persist().await?;
        let mut decided = Vec::new();
        for name in names {
            let key = self.catalogs.with_pins(|pin_store| resolve(pin_store, name))?;
            if self.catalogs.is_configured(&key.module)
                && self.catalogs.with_pins(|pin_store| pin_store.rule(&key.module)) == Pinning::Off
            {
                return Err(Error::new(ErrorKind::Conflict, format!("The tools of `{}` are not pinned.", key.module))
                    .hint(format!("Disable the tool instead: `hikite tools disable {key}`.")));
            }
            let hash = self.catalogs.with_pins(|pin_store| pin_store.pin(&key).map(|pin| Arc::clone(&pin.hash)));
            let pin = ToolPin { hash: hash.unwrap_or_default(), blocked: true, at: now_ms() };
            self.put_pin(&key, &pin).await?;
            decided.push((key, pin));
        }
        self.catalogs.change_pins(|pin_store| pin_store.set(decided));
        Ok(())
    }

    pub async fn block(&self, name: &str) -> Result<Raw, Error> {
        self.block_all(&[name.to_owned()]).await?;
        self.get(name).await
    }

    async fn approve_one(&self, key: &ToolKey, hash: &Arc<str>) -> Result<ToolPin, Error> {
        let offered = self.catalogs.with_pins(|pin_store| pin_store.seen(key).cloned()).ok_or_else(|| {
            Error::new(
                ErrorKind::Conflict,
                format!("`{key}` is not offered at the moment, so its definition cannot be reviewed."),
            )
            .hint("Try again when its server has returned its tool list.")
        })?;
        if offered.hash != *hash {
            return Err(Error::new(ErrorKind::Conflict, format!("`{key}` has changed since you reviewed it."))
                .hint(format!("Review it again with `hikite pin show {key}`.")));
        }
        let pin = ToolPin { hash: Arc::clone(hash), blocked: false, at: now_ms() };
        let definition = record::definition_entry(&pin, &pin::pinned(&offered.definition));
        self.registry.store.documents().put(&definition).await?;
        self.put_pin(key, &pin).await?;
        Ok(pin)
    }

    async fn put_pin(&self, key: &ToolKey, pin: &ToolPin) -> Result<(), Error> {
        let store = &self.registry.store;
        let new = record::row(key, pin);
        let done = match store.pins().get(&new.id, now_ms()).await? {
            Some(there) => store.pins().change(&PinRow { version: there.version, ..new }).await?,
            None => store.pins().put(&new).await?,
        };
        if done {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Conflict, format!("Somebody else has just decided about `{key}`."));
        Err(error.hint("Review it again."))
    }
}

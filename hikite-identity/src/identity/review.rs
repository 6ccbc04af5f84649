//! Consents and logins for admins: listing and revoking.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::DocumentRow;
use hikite_store::clock::now_ms;

use super::{CONSENT, GRANT, Identity, LOGIN, grant};

impl Identity {
    /// Returns all consents, oldest first.
    pub async fn consent_objects(&self) -> Result<Vec<Raw>, Error> {
        let names = self.clients().await?;
        let name_of = |id: &str| names.iter().find(|client| client.id == id).map(|client| client.name.clone());
        let entries = self.store.entries(CONSENT, None, now_ms()).await?;
        let object = |entry: &DocumentRow| {
            let form = entry.form.object().unwrap_or_default();
            let client = form.text("client").unwrap_or_default();
            let scopes = form.get("scopes").cloned().unwrap_or_else(|| Raw::array(&[]));
            self.of_user(entry)
                .with("client", client.as_str())
                .with("clientName", Raw::of(&name_of(&client)))
                .with("scopes", scopes)
                .with("project", Raw::of(&form.text("project")))
                .with("createdAt", rfc3339(entry.created_at))
                .raw()
        };
        Ok(entries.iter().map(object).collect())
    }

    /// Revokes a consent and its grants: the client has to ask its user again.
    pub async fn end_consent(&self, id: &str) -> Result<(), Error> {
        let taken = self.store.take_document(CONSENT, id, now_ms()).await?;
        let entry = taken.ok_or_else(|| Error::new(ErrorKind::NotFound, "There is no such consent."))?;
        let client = entry.form.object().and_then(|form| form.text("client"));
        for grant in self.store.entries(GRANT, Some(&entry.owner), now_ms()).await? {
            if client.is_some() && grant::client_of(&grant) == client {
                self.end_grant(&grant.id).await?;
            }
        }
        Ok(())
    }

    /// Returns all logins of browsers, oldest first.
    pub async fn login_objects(&self) -> Result<Vec<Raw>, Error> {
        let entries = self.store.entries(LOGIN, None, now_ms()).await?;
        let object = |entry: &DocumentRow| {
            self.of_user(entry)
                .with("createdAt", rfc3339(entry.created_at))
                .with("expiresAt", rfc3339(entry.expires_at))
                .raw()
        };
        Ok(entries.iter().map(object).collect())
    }

    /// Ends a login, by its id in the list.
    pub async fn end_login_by_id(&self, id: &str) -> Result<(), Error> {
        let taken = self.store.take_document(LOGIN, id, now_ms()).await?;
        taken.map(drop).ok_or_else(|| Error::new(ErrorKind::NotFound, "There is no such login."))
    }

    fn of_user(&self, entry: &DocumentRow) -> Object {
        let user = self.user_of(&entry.owner).map(|user| user.name.clone());
        Object::default()
            .with("id", entry.id.as_str())
            .with("subject", entry.owner.as_str())
            .with("user", Raw::of(&user))
    }
}

//! Consents and logins for admins: listing and revoking.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::clock::now_ms;
use hikite_store::{ConsentRow, LoginRow};

use super::Identity;

impl Identity {
    /// Returns all consents, oldest first.
    pub async fn consent_objects(&self) -> Result<Vec<Raw>, Error> {
        let names = self.clients().await?;
        let name_of = |id: &str| names.iter().find(|client| client.id == id).map(|client| client.name.clone());
        let consents = self.store.consents().all(now_ms()).await?;
        let object = |consent: &ConsentRow| {
            self.of_user(&consent.id, &consent.subject)
                .with("client", consent.client.as_str())
                .with("clientName", Raw::of(&name_of(&consent.client)))
                .with("scopes", Raw::of(&consent.scopes))
                .with("project", Raw::of(&consent.project))
                .with("createdAt", rfc3339(consent.created_at))
                .raw()
        };
        Ok(consents.iter().map(object).collect())
    }

    /// Revokes a consent and its grants: the client has to ask its user again.
    pub async fn end_consent(&self, id: &str) -> Result<(), Error> {
        let taken = self.store.consents().take(id, now_ms()).await?;
        let consent = taken.ok_or_else(|| Error::new(ErrorKind::NotFound, "There is no such consent."))?;
        let gone = self.store.grants().remove_of_client(&consent.client, Some(&consent.subject)).await?;
        self.update_snapshot(|snapshot| snapshot.remove_grants(&gone)).await;
        Ok(())
    }

    /// Returns all logins of browsers, oldest first.
    pub async fn login_objects(&self) -> Result<Vec<Raw>, Error> {
        let logins = self.store.logins().all(now_ms()).await?;
        let object = |login: &LoginRow| {
            self.of_user(&login.id, &login.subject)
                .with("createdAt", rfc3339(login.created_at))
                .with("expiresAt", rfc3339(login.expires_at))
                .raw()
        };
        Ok(logins.iter().map(object).collect())
    }

    /// Ends a login, by its id in the list.
    pub async fn end_login_by_id(&self, id: &str) -> Result<(), Error> {
        let taken = self.store.logins().take(id, now_ms()).await?;
        taken.map(drop).ok_or_else(|| Error::new(ErrorKind::NotFound, "There is no such login."))
    }

    fn of_user(&self, id: &str, subject: &str) -> Object {
        let user = self.user_of(subject).map(|user| user.name.clone());
        Object::default().with("id", id).with("subject", subject).with("user", Raw::of(&user))
    }
}

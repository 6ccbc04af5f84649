//! Consents and logins for admins: listing and revoking.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::clock::now_ms;
use hikite_store::{ConsentRow, LoginRow};

use super::{ClientRegistry, Identity, LoginSessions};

impl ClientRegistry<'_> {
    /// Returns all consents, oldest first.
    pub async fn consent_objects(self) -> Result<Vec<Raw>, Error> {
        let names = self.all().await?;
        let name_of = |id: &str| names.iter().find(|client| client.id == id).map(|client| client.name.clone());
        let consents = self.0.store.consents().all(now_ms()).await?;
        let object = |consent: &ConsentRow| {
            of_user(self.0, &consent.id, &consent.subject)
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
    pub async fn end_consent(self, id: &str) -> Result<(), Error> {
        let taken = self.0.store.consents().take(id, now_ms()).await?;
        let consent = taken.ok_or_else(|| Error::new(ErrorKind::NotFound, "There is no such consent."))?;
        let gone = self.0.store.grants().remove_of_client(&consent.client, Some(&consent.subject)).await?;
        self.0.update_snapshot(|snapshot| snapshot.remove_grants(&gone)).await;
        Ok(())
    }
}

impl LoginSessions<'_> {
    /// Returns all logins of browsers, oldest first.
    pub async fn objects(self) -> Result<Vec<Raw>, Error> {
        let logins = self.0.store.logins().all(now_ms()).await?;
        let object = |login: &LoginRow| {
            of_user(self.0, &login.id, &login.subject)
                .with("createdAt", rfc3339(login.created_at))
                .with("expiresAt", rfc3339(login.expires_at))
                .raw()
        };
        Ok(logins.iter().map(object).collect())
    }

    /// Ends a login, by its id in the list.
    pub async fn end_by_id(self, id: &str) -> Result<(), Error> {
        let taken = self.0.store.logins().take(id, now_ms()).await?;
        taken.map(drop).ok_or_else(|| Error::new(ErrorKind::NotFound, "There is no such login."))
    }
}

fn of_user(identity: &Identity, id: &str, subject: &str) -> Object {
    let user = identity.users().of_subject(subject).map(|user| user.name.clone());
    Object::default().with("id", id).with("subject", subject).with("user", Raw::of(&user))
}

//! Passkeys of users, and the `WebAuthn` challenges for them. A challenge is valid once, for a few minutes, for one
//! browser and one purpose. The signature checks are in `hikite-vault`.

use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::time::rfc3339;
use hikite_store::clock::now_ms;
use hikite_store::{DocumentRow, OwnerCheck, PasskeyRow, Store};
use hikite_vault::{
    Base64UrlBytes, Passkey, PasskeyAssertion, PasskeyChallenge, PasskeyError, PasskeyRegistration, RelyingParty,
    UserVerification,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Store kind of challenges, by value.
const CHALLENGE: &str = "challenge";

const CHALLENGE_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Maximum number of passkeys per user.
const KEYS: usize = 20;
const NAME_CHARS: usize = 64;

#[derive(Clone)]
pub struct Passkeys {
    store: Store,
}

/// A challenge as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredChallenge {
    purpose: ChallengePurpose,
    /// Hash of the browser's secret cookie value.
    browser: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ChallengePurpose {
    Register,
    Login,
}

impl std::fmt::Debug for Passkeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passkeys")
    }
}

impl Passkeys {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Returns the `WebAuthn` creation options for a logged-in user. `browser` is a secret that only this browser
    /// knows: the value of its cookie.
    pub async fn register_options(
        &self,
        site: &RelyingParty,
        (subject, name): (&str, &str),
        browser: &str,
    ) -> Result<Value, Error> {
        let keys = self.store.passkeys().of_subject(subject, now_ms()).await?;
        let known: Vec<Base64UrlBytes> = keys.iter().filter_map(|key| Base64UrlBytes::parse(&key.id)).collect();
        if known.len() >= KEYS {
            let error = Error::new(ErrorKind::Conflict, format!("You already have {KEYS} passkeys."));
            return Err(error.hint("Remove one that you no longer use."));
        }
        let challenge = self.question(ChallengePurpose::Register, subject, browser).await?;
        Ok(site.creation_options(&challenge, (&handle(subject), name), &known))
    }

    /// Verifies and stores a new passkey. `called` is the name given by the user.
    pub async fn register(
        &self,
        site: &RelyingParty,
        subject: &str,
        browser: &str,
        (answer, called): (&Value, &str),
    ) -> Result<Value, Error> {
        let answer = PasskeyRegistration::read(answer).map_err(refused)?;
        let challenge = answer.challenge().ok_or_else(|| refused(PasskeyError::Malformed))?;
        let owner = self.consumed(&challenge, ChallengePurpose::Register, browser).await?;
        if owner != subject {
            return Err(refused(PasskeyError::Challenge));
        }
        let passkey = site.verify_registration(&challenge, &answer, UserVerification::Required).map_err(refused)?;
        let called: String = called.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
        let name = if called.is_empty() { "passkey".to_owned() } else { called };
        let row = PasskeyRow {
            id: passkey.id.text(),
            subject: subject.to_owned(),
            name,
            public_key: passkey.public_key.text(),
            counter: passkey.counter.into(),
            version: 0,
            created_at: now_ms(),
        };
        if !self.store.passkeys().put_owned(&row, OwnerCheck::User).await? {
            if self.store.passkeys().get(&row.id, now_ms()).await?.is_some() {
                return Err(Error::new(ErrorKind::Conflict, "This passkey is already registered."));
            }
            let error = Error::new(ErrorKind::Authentication, "This user is not allowed to log in.");
            return Err(error.hint("Ask the administrator of this server."));
        }
        Ok(shown(&row))
    }

    /// Returns the `WebAuthn` request options for a login. They list no credentials, so that knowing a user name
    /// reveals nothing about the user's passkeys.
    pub async fn login_options(&self, site: &RelyingParty, browser: &str) -> Result<Value, Error> {
        let challenge = self.question(ChallengePurpose::Login, "", browser).await?;
        Ok(site.request_options(&challenge, &[]))
    }

    /// Verifies a login and returns the subject.
    pub async fn log_in(&self, site: &RelyingParty, browser: &str, answer: &Value) -> Result<String, Error> {
        let answer = PasskeyAssertion::read(answer).map_err(refused)?;
        let challenge = answer.challenge().ok_or_else(|| refused(PasskeyError::Malformed))?;
        self.consumed(&challenge, ChallengePurpose::Login, browser).await?;
        let unknown = || refused(PasskeyError::Credential);
        let id = answer.id().text();
        let mut row = self.store.passkeys().get(&id, now_ms()).await?.ok_or_else(unknown)?;
        let passkey = passkey_of(&row).ok_or_else(unknown)?;
        if answer.handle().is_some_and(|told| told != handle(&row.subject)) {
            return Err(unknown());
        }
        let counter =
            site.verify_assertion(&challenge, &passkey, &answer, UserVerification::Required).map_err(refused)?;
        if counter != passkey.counter {
            row.counter = counter.into();
            // Two logins with the same counter: one comes from a cloned authenticator.
            if !self.store.passkeys().change(&row).await? {
                return Err(refused(PasskeyError::Counter));
            }
        }
        Ok(row.subject)
    }

    /// Returns a user's passkeys for display, oldest first.
    pub async fn list(&self, subject: &str) -> Result<Vec<Value>, Error> {
        Ok(self.store.passkeys().of_subject(subject, now_ms()).await?.iter().map(shown).collect())
    }

    /// Removes a passkey, if it belongs to the subject.
    pub async fn remove(&self, subject: &str, id: &str) -> Result<(), Error> {
        let mine = self.store.passkeys().get(id, now_ms()).await?.is_some_and(|row| row.subject == subject);
        if mine && self.store.passkeys().take(id, now_ms()).await?.is_some() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, "There is no such passkey."))
    }

    async fn question(
        &self,
        purpose: ChallengePurpose,
        subject: &str,
        browser: &str,
    ) -> Result<PasskeyChallenge, Error> {
        let failed = |_| Error::new(ErrorKind::Internal, "The operating system returned no random bytes.");
        let challenge = PasskeyChallenge::random().map_err(failed)?;
        let now = now_ms();
        let lifetime_ms = u64::try_from(CHALLENGE_LIFETIME.as_millis()).unwrap_or_default();
        let entry = DocumentRow {
            kind: CHALLENGE,
            id: challenge.text(),
            owner: subject.to_owned(),
            document: Raw::of(&StoredChallenge { purpose, browser: hashed(browser) }),
            version: 0,
            created_at: now,
            expires_at: now + lifetime_ms,
        };
        self.store.documents().put(&entry).await?;
        Ok(challenge)
    }

    /// Consumes a challenge, whether or not the answer is valid, and returns the subject it was issued to.
    async fn consumed(
        &self,
        challenge: &PasskeyChallenge,
        purpose: ChallengePurpose,
        browser: &str,
    ) -> Result<String, Error> {
        let consumed = self.store.documents().take(CHALLENGE, &challenge.text(), now_ms()).await?;
        let expected = StoredChallenge { purpose, browser: hashed(browser) };
        let fits = |entry: &DocumentRow| entry.document.decode().is_ok_and(|asked: StoredChallenge| asked == expected);
        let entry = consumed.filter(fits).ok_or_else(|| refused(PasskeyError::Challenge))?;
        Ok(entry.owner)
    }
}

fn shown(row: &PasskeyRow) -> Value {
    json!({ "id": row.id, "name": row.name, "createdAt": rfc3339(row.created_at) })
}

/// Returns the key for verifying; `None` if it is unreadable.
fn passkey_of(row: &PasskeyRow) -> Option<Passkey> {
    Some(Passkey {
        id: Base64UrlBytes::parse(&row.id)?,
        public_key: Base64UrlBytes::parse(&row.public_key)?,
        counter: row.counter.try_into().ok()?,
    })
}

/// Returns the user handle for the authenticator: a hash that reveals nothing about the user.
fn handle(subject: &str) -> [u8; 32] {
    Sha256::digest(subject.as_bytes()).into()
}

fn hashed(browser: &str) -> String {
    hikite_core::hex::hex(&Sha256::digest(browser.as_bytes()))
}

fn refused(fault: PasskeyError) -> Error {
    Error::new(ErrorKind::Authentication, format!("The passkey was not accepted: {fault}."))
        .hint("Try again. If you lost it, log in with a password and register another one.")
}

#[cfg(test)]
mod tests {
    use hikite_store::{StoreUrl, UserRow};

    use super::*;

    /// Responses of third-party authenticators, with their challenges.
    const VECTORS: &str = include_str!("../../hikite-vault/src/passkey/tests/vectors.json");
    const BROWSER: &str = "what the cookie holds";

    async fn passkeys() -> (Passkeys, RelyingParty) {
        let site = RelyingParty::of("https://hikite.example").expect("a site");
        let store = Store::open(&StoreUrl::memory()).await.expect("a store");
        for name in ["alice", "mallory"] {
            let user = UserRow {
                id: format!("usr_{name}"),
                name: name.into(),
                subject: name.into(),
                role: "member".into(),
                password: None,
                permissions: None,
                disabled: false,
                project: None,
                created_at: 1,
                version: 1,
            };
            assert!(store.users().put(&user, None).await.expect("put"));
        }
        (Passkeys::new(store), site)
    }

    fn vector(name: &str) -> Value {
        let all: Value = serde_json::from_str(VECTORS).expect("JSON");
        let found = all.as_array().and_then(|all| all.iter().find(|vector| vector["name"] == name));
        found.expect("a vector").clone()
    }

    /// Stores a challenge with a known value.
    async fn put(passkeys: &Passkeys, question: &Value, purpose: ChallengePurpose, subject: &str) {
        let entry = DocumentRow {
            kind: CHALLENGE,
            id: question.as_str().expect("text").to_owned(),
            owner: subject.to_owned(),
            document: Raw::of(&StoredChallenge { purpose, browser: hashed(BROWSER) }),
            version: 0,
            created_at: 1,
            expires_at: now_ms() + 60_000,
        };
        assert!(passkeys.store.documents().put(&entry).await.expect("a store"));
    }

    async fn registered(passkeys: &Passkeys, site: &RelyingParty) -> Value {
        let vector = vector("EdDSA");
        put(passkeys, &vector["made_for"], ChallengePurpose::Register, "alice").await;
        let answer = (&vector["made"], " laptop\n");
        let shown = passkeys.register(site, "alice", BROWSER, answer).await.expect("registered");
        assert_eq!(shown["name"], "laptop");
        vector
    }

    #[tokio::test]
    async fn a_key_lets_in_whom_it_was_made_for_once_per_question() {
        let (passkeys, site) = passkeys().await;
        let vector = registered(&passkeys, &site).await;
        put(&passkeys, &vector["used_for"], ChallengePurpose::Login, "").await;
        let subject = passkeys.log_in(&site, BROWSER, &vector["used"]).await.expect("let in");
        assert_eq!(subject, "alice");
        let again = passkeys.log_in(&site, BROWSER, &vector["used"]).await;
        assert_eq!(again.map_err(|error| error.kind), Err(ErrorKind::Authentication), "the question is used up");
        put(&passkeys, &vector["used_for"], ChallengePurpose::Login, "").await;
        let copied = passkeys.log_in(&site, BROWSER, &vector["used"]).await.expect_err("the same count again");
        assert!(copied.message.contains("higher count"), "{}", copied.message);
    }

    #[tokio::test]
    async fn a_question_is_for_one_browser_one_action_and_one_user() {
        let (passkeys, site) = passkeys().await;
        let vector = vector("EdDSA");
        put(&passkeys, &vector["made_for"], ChallengePurpose::Register, "alice").await;
        let other = passkeys.register(&site, "alice", "another browser", (&vector["made"], "x")).await;
        assert!(other.is_err());
        let late = passkeys.register(&site, "alice", BROWSER, (&vector["made"], "x")).await;
        assert!(late.is_err(), "a question is used up by a wrong answer, too");
        put(&passkeys, &vector["made_for"], ChallengePurpose::Register, "bob").await;
        assert!(passkeys.register(&site, "alice", BROWSER, (&vector["made"], "x")).await.is_err(), "of bob");
        put(&passkeys, &vector["made_for"], ChallengePurpose::Login, "").await;
        assert!(passkeys.register(&site, "alice", BROWSER, (&vector["made"], "x")).await.is_err(), "to log in");
        assert!(passkeys.list("alice").await.expect("a list").is_empty());
        let elsewhere = RelyingParty::of("https://evil.example").expect("a site");
        put(&passkeys, &vector["made_for"], ChallengePurpose::Register, "alice").await;
        assert!(passkeys.register(&elsewhere, "alice", BROWSER, (&vector["made"], "x")).await.is_err());
    }

    #[tokio::test]
    async fn a_key_whose_authenticator_names_another_user_lets_nobody_in() {
        let (passkeys, site) = passkeys().await;
        let vector = vector("RS256");
        put(&passkeys, &vector["made_for"], ChallengePurpose::Register, "mallory").await;
        passkeys.register(&site, "mallory", BROWSER, (&vector["made"], "x")).await.expect("registered");
        put(&passkeys, &vector["used_for"], ChallengePurpose::Login, "").await;
        assert!(passkeys.log_in(&site, BROWSER, &vector["used"]).await.is_err());
    }

    #[tokio::test]
    async fn whoever_was_not_made_sure_of_registers_nothing() {
        let (passkeys, site) = passkeys().await;
        let vector = vector("soft");
        put(&passkeys, &vector["made_for"], ChallengePurpose::Register, "alice").await;
        assert!(passkeys.register(&site, "alice", BROWSER, (&vector["made"], "x")).await.is_err());
    }

    #[tokio::test]
    async fn keys_are_listed_and_removed_by_their_owner_alone() {
        let (passkeys, site) = passkeys().await;
        let vector = registered(&passkeys, &site).await;
        let id = vector["made"]["id"].as_str().expect("an id");
        assert!(passkeys.remove("bob", id).await.is_err());
        let shown = passkeys.list("alice").await.expect("a list");
        assert_eq!((shown.len(), &shown[0]["id"]), (1, &json!(id)));
        assert!(!shown[0].to_string().contains("public_key"));
        let asked = passkeys.register_options(&site, ("alice", "alice"), BROWSER).await.expect("options");
        assert_eq!(asked["excludeCredentials"][0]["id"], id);
        passkeys.remove("alice", id).await.expect("removed");
        put(&passkeys, &vector["used_for"], ChallengePurpose::Login, "").await;
        assert!(passkeys.log_in(&site, BROWSER, &vector["used"]).await.is_err());
    }
}

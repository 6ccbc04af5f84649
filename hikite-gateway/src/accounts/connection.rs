//! Connects an account in a browser, from the link to the tokens. One document in the store carries the flow, and each
//! step can be taken once. The secrets of a step (link, browser, state) are stored as hashes only; the PKCE verifier is
//! derived, not stored. A link identifies what is connected for whom but does not authenticate its opener: a login
//! does, or the one-time code that a terminal shows.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_core::time::rfc3339;
use hikite_core::uri::encode;
use hikite_store::{DocumentRow, OwnerCheck};
use hikite_vault::random_bytes;
use sha2::{Digest, Sha256};

use super::account::{Account, check_name};
use super::provider::AccountProvider;
use super::token::{AccountTokens, TokenDetails, TokenOutcome, failed};
use super::{AccountStore, CONNECTION, DEFAULT, OAUTH, id};
use hikite_store::clock::now_ms;

/// Lifetime of a link, enough for a person to consent.
const LIFE_MS: u64 = 15 * 60_000;
const WAITING: &str = "waiting";
const OPENED: &str = "opened";
const EXCHANGING: &str = "exchanging";
const CONNECTED: &str = "connected";
const FAILED: &str = "failed";
/// Alphabet without letters that look like others.
const CODE_LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_CHARS: usize = 8;
/// Number of wrong codes that invalidate a link.
const CODE_ATTEMPTS_MAX: u32 = 5;

/// A link that a person opens to connect an account.
#[derive(Clone, Debug)]
pub struct ConnectionLink {
    pub id: String,
    pub url: Secret,
    /// One-time code shown at a terminal; typing it into the page proves access to that terminal.
    pub code: Option<Secret>,
    pub expires_at: u64,
}

/// The pending connection behind a link, for the confirmation page.
#[derive(Clone, Debug)]
pub struct PendingConnection {
    pub provider: String,
    pub title: String,
    pub account: String,
    pub subject: Arc<str>,
    /// `true` if a terminal shows a code for it.
    pub has_code: bool,
}

/// A connected account, possibly not verified with its vendor yet.
#[derive(Clone, Debug)]
pub struct ConnectedAccount {
    pub waiting: PendingConnection,
    pub account: Arc<Account>,
}

/// Secret in a cookie that identifies a browser.
#[derive(Clone, Debug)]
pub struct BrowserSecret(pub Secret);

/// Query parameters of the provider's redirect back to us.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCallback {
    pub state: String,
    pub code: Option<Secret>,
    pub error: Option<String>,
}

impl BrowserSecret {
    pub fn random() -> Result<Self, Error> {
        secret().map(Self)
    }
}

/// Connections of accounts in a browser or a terminal.
#[derive(Clone, Copy, Debug)]
pub struct AccountConnections<'a>(pub(super) &'a AccountStore);

impl AccountConnections<'_> {
    /// Creates a link with which a subject connects an account. An existing account of that name is connected again.
    pub async fn begin(self, subject: &str, provider: &str, name: Option<&str>) -> Result<ConnectionLink, Error> {
        self.begin_with((subject, provider, name), None).await
    }

    /// Creates a link for a person at a terminal, with a code that proves to the page that it is the same person.
    pub async fn begin_in_terminal(
        self,
        subject: &str,
        provider: &str,
        name: Option<&str>,
    ) -> Result<ConnectionLink, Error> {
        self.begin_with((subject, provider, name), Some(code()?)).await
    }

    async fn begin_with(
        self,
        (subject, provider, name): (&str, &str, Option<&str>),
        code: Option<Secret>,
    ) -> Result<ConnectionLink, Error> {
        let name = name.unwrap_or(DEFAULT);
        check_name(name)?;
        self.0.providers().connectable(provider).await?;
        let (id, secret, now) = (id()?, secret()?, now_ms());
        let mut form = Object::default()
            .with("provider", provider)
            .with("name", name)
            .with("step", WAITING)
            .with("link", hash(secret.expose()));
        if let Some(code) = &code {
            form.set("code", hash(&plain_code(code.expose())));
        }
        let entry = DocumentRow {
            kind: CONNECTION,
            id: id.clone(),
            owner: subject.to_owned(),
            document: form.raw(),
            version: 1,
            created_at: now,
            expires_at: now + LIFE_MS,
        };
        self.0.secret_store.store().documents().put(&entry).await?;
        let base = self.0.settings.load().public_url.clone();
        let url = format!("{base}/connect/{}?link={id}.{}", encode(provider), secret.expose());
        Ok(ConnectionLink { id, url: Secret::hidden(url), code, expires_at: now + LIFE_MS })
    }

    /// Returns `true` if this is the code that the terminal shows for a link. Wrong codes are counted; too many
    /// invalidate the link.
    pub async fn is_terminal_code(self, provider: &str, link: &str, code: &str) -> Result<bool, Error> {
        loop {
            let (entry, form) = self.at(link, (WAITING, "link")).await?;
            self.shown(provider, &entry, &form)?;
            let Some(kept) = form.text("code") else { return Ok(false) };
            if kept == hash(&plain_code(code)) {
                return Ok(true);
            }
            let attempts = form.get("tries").and_then(Raw::whole).unwrap_or(0) + 1;
            let form = form.with("tries", Raw::of(&attempts));
            let form = if attempts < CODE_ATTEMPTS_MAX { form } else { form.with("link", Raw::null()) };
            if self.0.secret_store.store().documents().change(&DocumentRow { document: form.raw(), ..entry }).await? {
                return if attempts < CODE_ATTEMPTS_MAX { Ok(false) } else { Err(invalid_link()) };
            }
        }
    }

    /// Returns the state of a connection that this subject started.
    pub async fn progress(self, subject: &str, id: &str) -> Result<hikite_api::Connection, Error> {
        let entry = self.0.secret_store.store().documents().get(CONNECTION, id, now_ms()).await?;
        let entry = entry.filter(|entry| entry.owner == subject);
        let entry =
            entry.ok_or_else(|| Error::new(ErrorKind::NotFound, "This connection does not exist or has expired."))?;
        let form = entry.document.object().unwrap_or_default();
        Ok(hikite_api::Connection {
            provider: form.text("provider").unwrap_or_default(),
            name: form.text("name").unwrap_or_default(),
            state: form.text("step").unwrap_or_default(),
            account: form.text("account"),
            account_state: form.text("standing"),
            problem: form.text("problem"),
            error: form.text("error"),
            expires_at: rfc3339(entry.expires_at),
            id: entry.id,
        })
    }

    /// Describes a link without changing it, because link previews must not consume it.
    pub async fn waiting(self, provider: &str, link: &str) -> Result<PendingConnection, Error> {
        let (entry, form) = self.at(link, (WAITING, "link")).await?;
        self.shown(provider, &entry, &form)
    }

    /// Consumes the link and returns the provider's authorization URL.
    pub async fn redirect_to_provider(
        self,
        provider: &str,
        link: &str,
        browser: &BrowserSecret,
    ) -> Result<Secret, Error> {
        let (entry, form) = self.at(link, (WAITING, "link")).await?;
        self.shown(provider, &entry, &form)?;
        let (definition, app) = self.0.providers().connectable(provider).await?;
        let state = format!("{}.{}", entry.id, secret()?.expose());
        let form = form
            .with("step", OPENED)
            .with("link", Raw::null())
            .with("state", hash(secret_of(&state)))
            .with("browser", hash(browser.0.expose()));
        if !self.0.secret_store.store().documents().change(&DocumentRow { document: form.raw(), ..entry }).await? {
            return Err(invalid_link());
        }
        Ok(self.authorize_url(&definition, &app.client_id, &state))
    }

    /// Handles the provider's redirect: exchanges the code for tokens and stores the account. Refused if another user
    /// is logged in by now.
    pub async fn handle_callback(
        self,
        returned: ConnectionCallback,
        browser: Option<&BrowserSecret>,
        logged_in: Option<&str>,
    ) -> Result<ConnectedAccount, Error> {
        let (entry, form) = self.at(&returned.state, (OPENED, "state")).await?;
        if logged_in.is_some_and(|subject| subject != entry.owner) {
            return Err(invalid_link());
        }
        let same = browser.map(|browser| hash(browser.0.expose()));
        if same.is_none() || same != form.text("browser") {
            return Err(invalid_link());
        }
        let provider = form.text("provider").unwrap_or_default();
        let waiting = self.shown(&provider, &entry, &form)?;
        // Checked before the step is taken: if the user was removed meanwhile, the document is gone and the step fails.
        let holder = self.0.holder(&waiting.subject).await?;
        let taken =
            DocumentRow { document: form.clone().with("step", EXCHANGING).with("state", Raw::null()).raw(), ..entry };
        if !self.0.secret_store.store().documents().change(&taken).await? {
            return Err(invalid_link());
        }
        let outcome = self.connected(&waiting, &returned, holder).await;
        let form = match &outcome {
            Ok(account) => form
                .with("step", CONNECTED)
                .with("account", &*account.id)
                .with("standing", account.status.word())
                .with("problem", account.problem.as_deref().map_or_else(Raw::null, Raw::from)),
            Err(error) => form.with("step", FAILED).with("error", &*error.message),
        };
        let form = form.with("state", Raw::null()).with("browser", Raw::null());
        let done = DocumentRow { document: form.raw(), version: taken.version + 1, ..taken };
        self.0.secret_store.store().documents().change(&done).await?;
        outcome.map(|account| ConnectedAccount { waiting, account })
    }

    async fn connected(
        self,
        waiting: &PendingConnection,
        returned: &ConnectionCallback,
        holder: OwnerCheck,
    ) -> Result<Arc<Account>, Error> {
        if let Some(error) = &returned.error {
            let word: String = error.chars().filter(char::is_ascii_graphic).take(64).collect();
            let error =
                Error::new(ErrorKind::AccountRequired, format!("{} rejected the connection: `{word}`.", waiting.title));
            return Err(error.hint("Start again and grant the requested access."));
        }
        let code = returned.code.clone().ok_or_else(invalid_link)?;
        let (provider, app) = self.0.providers().connectable(&waiting.provider).await?;
        let mut form = vec![
            ("grant_type".to_owned(), Secret::hidden("authorization_code")),
            ("code".to_owned(), code),
            ("redirect_uri".to_owned(), Secret::hidden(self.redirect_uri())),
        ];
        if provider.pkce {
            form.push(("code_verifier".to_owned(), self.verifier(&returned.state)));
        }
        match self.0.credentials().send_token_request(&provider, provider.request(&app, form), None).await? {
            TokenOutcome::Tokens(tokens, more) => self.store_account((waiting, holder), &tokens, more).await,
            said => Err(failed(&provider.title, said)),
        }
    }

    async fn store_account(
        self,
        (waiting, holder): (&PendingConnection, OwnerCheck),
        tokens: &AccountTokens,
        more: TokenDetails,
    ) -> Result<Arc<Account>, Error> {
        let (subject, provider) = (&*waiting.subject, waiting.provider.as_str());
        self.0.read_store().await?;
        let there = self.0.known.load().named(subject, provider, &waiting.account);
        let account = match there {
            Some(there) => there,
            None => Arc::new(Account::new(id()?, subject, provider, &waiting.account, now_ms())),
        };
        let with_tokens = |account: &mut Account| {
            (account.expires_at, account.last_refresh) = (tokens.expires_at, tokens.got_at);
            account.scopes = more.scopes.clone().unwrap_or_default();
            account.details.extend(more.details.clone());
        };
        let mut fresh = Account::clone(&account);
        with_tokens(&mut fresh);
        // Verified before anything is stored, so that a refused token does not replace a working one.
        self.0.credentials().verify_new(&mut fresh, tokens).await?;
        let change = |account: &mut Account| {
            with_tokens(account);
            account.status = fresh.status;
            account.problem.clone_from(&fresh.problem);
            account.verified_at = fresh.verified_at;
        };
        if !self.0.save_account(&fresh, (OAUTH, &tokens.text()), holder).await? {
            self.0.update_account(&account, change).await;
        }
        self.0.held.lock().remove(&account.id);
        self.0.read_store().await?;
        Ok(self.0.known.load().by_id(&account.id).unwrap_or_else(|| Arc::new(fresh)))
    }

    /// Returns the document of a secret, if it is at this step and the secret is right.
    async fn at(self, proof: &str, (step, field): (&str, &str)) -> Result<(DocumentRow, Object), Error> {
        let id = proof.split('.').next().unwrap_or_default();
        let entry =
            self.0.secret_store.store().documents().get(CONNECTION, id, now_ms()).await?.ok_or_else(invalid_link)?;
        let form = entry.document.object().ok_or_else(invalid_link)?;
        let is_there = form.text("step").as_deref() == Some(step);
        let is_right = form.text(field).is_some_and(|kept| kept == hash(secret_of(proof)));
        if is_there && is_right { Ok((entry, form)) } else { Err(invalid_link()) }
    }

    fn shown(self, provider: &str, entry: &DocumentRow, form: &Object) -> Result<PendingConnection, Error> {
        if form.text("provider").as_deref() != Some(provider) {
            return Err(invalid_link());
        }
        let title = self.0.providers().get(provider).map_or_else(|| provider.to_owned(), |provider| provider.title);
        Ok(PendingConnection {
            provider: provider.to_owned(),
            title,
            account: form.text("name").unwrap_or_default(),
            subject: entry.owner.as_str().into(),
            has_code: form.text("code").is_some(),
        })
    }

    fn redirect_uri(self) -> String {
        format!("{}/connect/callback", self.0.settings.load().public_url)
    }

    fn verifier(self, state: &str) -> Secret {
        Secret::hidden(URL_SAFE_NO_PAD.encode(self.0.secret_store.derive(&format!("connect {state}"))))
    }

    fn authorize_url(self, provider: &AccountProvider, client_id: &str, state: &str) -> Secret {
        let redirect = self.redirect_uri();
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier(state).expose()));
        let scopes = provider.scopes.join(" ");
        let mut pairs =
            vec![("response_type", "code"), ("client_id", client_id), ("redirect_uri", &redirect), ("state", state)];
        if !scopes.is_empty() {
            pairs.push(("scope", &scopes));
        }
        if provider.pkce {
            pairs.extend([("code_challenge", challenge.as_str()), ("code_challenge_method", "S256")]);
        }
        pairs.extend(provider.authorize_params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let query: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let joint = if provider.authorize_url.contains('?') { '&' } else { '?' };
        Secret::hidden(format!("{}{joint}{}", provider.authorize_url, query.join("&")))
    }
}

fn secret() -> Result<Secret, Error> {
    let bytes: [u8; 32] = random_bytes().map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))?;
    Ok(Secret::hidden(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Generates a code that a person reads from one screen and types into another. 32 letters divide a byte evenly.
fn code() -> Result<Secret, Error> {
    let bytes: [u8; CODE_CHARS] = random_bytes().map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))?;
    let letters = bytes.map(|byte| char::from(CODE_LETTERS[usize::from(byte % 32)]));
    let (first, second): (String, String) = (letters[..4].iter().collect(), letters[4..].iter().collect());
    Ok(Secret::hidden(format!("{first}-{second}")))
}

/// Normalizes a code: people omit the dash and type lower case.
fn plain_code(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

/// Returns the secret part, everything after the id.
fn secret_of(proof: &str) -> &str {
    proof.split_once('.').map_or("", |(_, secret)| secret)
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Builds the one error for all bad links: it must not reveal what is wrong with them.
fn invalid_link() -> Error {
    Error::new(ErrorKind::NotFound, "This link is invalid or has expired.")
        .hint("Get a new one with `hikite account connect`.")
}

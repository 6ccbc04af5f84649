//! Changes to accounts, written to the store first and published after that. Does not check permissions: callers of
//! this module do.

use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Object;
use hikite_core::permission::Permissions;
use hikite_core::secret::Secret;
use hikite_core::suggestion;
use hikite_core::violation::{self, Violation};
use hikite_store::DocumentRow;

use super::account::{Account, check_name};
use super::provider::safe_of;
use super::token::AccountTokens;
use super::{AccountStore, CLIENT_SECRET, DEFAULT, FROM_FILE, PROVIDER, ProviderRegistry, TOKEN, id};
use hikite_store::clock::now_ms;

const NEW: [&str; 6] = ["provider", "name", "token", "email", "site", "api"];
const CHANGES: [&str; 4] = ["name", "default", "shared", "permissions"];
const TOKEN_CHARS: usize = 8192;

impl AccountStore {
    /// Returns the accounts that a caller may use, or all accounts, together with those of the config.
    pub fn objects(&self, caller: &Caller, all: bool) -> Vec<hikite_api::Account> {
        let known = self.known.load();
        let is_shown = |account: &&Arc<Account>| all || account.subject == caller.subject || account.shared;
        let mut objects: Vec<_> = known.all().iter().filter(is_shown).map(|account| account.object()).collect();
        for (provider, allowed) in &self.settings.load().from_file {
            objects.push(hikite_api::Account {
                id: format!("{FROM_FILE}:{provider}"),
                name: DEFAULT.to_owned(),
                provider: provider.clone(),
                shared: true,
                permissions: allowed.form(),
                managed_by_file: true,
                ..self.credentials().configured_state(provider).object()
            });
        }
        objects
    }

    /// Returns an account of the caller, or anybody's if the caller is an admin.
    pub fn account(&self, caller: &Caller, id: &str) -> Result<Arc<Account>, Error> {
        let found = self.known.load().by_id(id);
        let may = |account: &Arc<Account>| account.subject == caller.subject || caller.is_admin();
        found.filter(may).ok_or_else(|| unknown(id))
    }

    /// Finds an account of a subject by its id, or by its name with a provider.
    pub fn find(&self, subject: &str, provider: Option<&str>, named: &str) -> Result<Arc<Account>, Error> {
        let known = self.known.load();
        if let Some(account) = known.by_id(named) {
            return Ok(account);
        }
        let is_meant = |account: &&Arc<Account>| {
            &*account.subject == subject
                && account.name == named
                && provider.is_none_or(|provider| &*account.provider == provider)
        };
        let mut found = known.all().iter().filter(is_meant);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(Arc::clone(only)),
            (Some(_), Some(_)) => {
                Err(Error::new(ErrorKind::Validation, format!("More than one account is called `{named}`."))
                    .hint("Use the account's id, or add `--provider`."))
            }
            _ => Err(unknown(named)),
        }
    }

    /// Adds an account with a manually created token: `{provider, name?, token, email?, site?, api?}`.
    pub async fn add(&self, caller: &Caller, form: &Object) -> Result<Arc<Account>, Error> {
        let holder = self.holder(&caller.subject).await?;
        let mut account = self.read_new(caller, form)?;
        let token = form.text("token").map(|token| token.trim().to_owned()).unwrap_or_default();
        self.read_store().await?;
        self.check_is_new(&account)?;
        // Verified before anything is stored, and before the lock is taken.
        self.credentials().verify_new(&mut account, &AccountTokens::fixed(Secret::hidden(token.as_str()), 0)).await?;
        let _change = self.change_lock.lock().await;
        self.read().await?;
        self.check_is_new(&account)?;
        self.save_account(&account, (TOKEN, &Secret::hidden(token)), holder).await?;
        self.read().await?;
        self.known.load().by_id(&account.id).ok_or_else(|| unknown(&account.id))
    }

    fn check_is_new(&self, account: &Account) -> Result<(), Error> {
        let Account { subject, provider, name, .. } = account;
        if self.known.load().named(subject, provider, name).is_none() {
            return Ok(());
        }
        let message = format!("An account `{name}` with `{provider}` already exists.");
        Err(Error::new(ErrorKind::Conflict, message).hint("Remove it first, or choose another `name`."))
    }

    fn read_new(&self, caller: &Caller, form: &Object) -> Result<Account, Error> {
        let mut faults = unknown_members(form, &NEW);
        faults.extend(not_text(form, &NEW));
        let text = |name: &str| form.text(name).filter(|text| !text.trim().is_empty());
        let name = form.text("name").unwrap_or_else(|| DEFAULT.into());
        let Some(provider) = text("provider") else {
            faults.push(Violation::new("/provider", "`provider` must be the name of a provider."));
            return Err(violation::error(&faults));
        };
        let fine = |token: &str| {
            token.chars().count() <= TOKEN_CHARS && token.trim().bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !text("token").is_some_and(|token| fine(&token)) {
            faults.push(Violation::new("/token", "`token` must be a token without spaces."));
        }
        let mut account = Account::new(id()?, &caller.subject, &provider, &name, now_ms());
        account.email = text("email");
        account.api = text("api");
        if account.api.is_some() && !caller.is_admin() {
            faults.push(Violation::new("/api", "Only an admin may set another address for the service."));
        }
        if let Some(site) = text("site") {
            let site = site.trim_start_matches("https://").trim_end_matches('/').to_owned();
            if !caller.is_admin() && !self.is_site(&provider, &site) {
                faults.push(Violation::new("/site", "Only an admin may set a site outside the service's own domain."));
            }
            account.details.insert("site".into(), site);
        }
        if !faults.is_empty() {
            return Err(violation::error(&faults));
        }
        check_name(&name)?;
        Ok(account)
    }

    /// Returns `true` if a host belongs to the provider.
    fn is_site(&self, provider: &str, site: &str) -> bool {
        let plain = site.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        let ends = self.providers().get(provider).map(|provider| provider.sites).unwrap_or_default();
        plain && ends.iter().any(|end| site.ends_with(end.as_str()))
    }

    /// Changes the given members: `name`, `default`, `shared`, `permissions`.
    pub async fn change(&self, account: &Account, changes: &Object) -> Result<Arc<Account>, Error> {
        let mut faults = unknown_members(changes, &CHANGES);
        faults.extend(not_text(changes, &["name"]));
        let mut flag = |name: &str| {
            let value = changes.get(name)?.decode::<bool>().ok();
            if value.is_none() {
                faults.push(Violation::new(violation::step(name), format!("`{name}` must be true or false.")));
            }
            value
        };
        let (is_default, shared) = (flag("default"), flag("shared"));
        let permissions = match changes
            .get("permissions")
            .map(|form| crate::off_worker::run_blocking(|| Permissions::read(form)))
            .transpose()
        {
            Ok(permissions) => permissions.map(Arc::new),
            Err(inner) => {
                let inside = |fault: Violation| Violation::new(format!("/permissions{}", fault.pointer), fault.message);
                faults.extend(inner.into_iter().map(inside));
                None
            }
        };
        if !faults.is_empty() {
            return Err(violation::error(&faults));
        }
        let name = changes.text("name");
        name.as_deref().map_or(Ok(()), check_name)?;
        self.update_account(account, |account| {
            account.name = name.clone().unwrap_or_else(|| account.name.clone());
            account.is_default = is_default.unwrap_or(account.is_default);
            account.shared = shared.unwrap_or(account.shared);
            account.permissions = permissions.clone().unwrap_or_else(|| Arc::clone(&account.permissions));
        })
        .await;
        if is_default == Some(true) {
            self.clear_other_defaults(account).await;
        }
        self.read_store().await?;
        self.known.load().by_id(&account.id).ok_or_else(|| unknown(&account.id))
    }

    /// Clears the default flag of the subject's other accounts with this provider.
    async fn clear_other_defaults(&self, account: &Account) {
        let known = self.known.load_full();
        let others = known.own(&account.subject, &account.provider).filter(|other| other.id != account.id);
        for other in others.filter(|other| other.is_default) {
            self.update_account(other, |other| other.is_default = false).await;
        }
    }

    /// Removes an account. Its row goes first, so that nobody asks for its secrets any more.
    pub async fn remove(&self, account: &Account) -> Result<(), Error> {
        let _change = self.change_lock.lock().await;
        self.secret_store.store().accounts().take(&account.id, now_ms()).await?;
        self.secret_store.remove(&account.id, None).await?;
        self.read().await.map(drop)
    }
}

impl ProviderRegistry<'_> {
    /// Stores our OAuth client at a provider: `{client_id, client_secret?}`.
    pub async fn set_app(self, provider: &str, form: &Object) -> Result<(), Error> {
        let mut faults = unknown_members(form, &["client_id", CLIENT_SECRET]);
        faults.extend(not_text(form, &[CLIENT_SECRET]));
        let client_id = form.text("client_id").filter(|id| !id.is_empty() && id.len() <= 512);
        if client_id.is_none() {
            faults.push(Violation::new("/client_id", "`client_id` must be the client id of the OAuth app."));
        }
        if !faults.is_empty() {
            return Err(violation::error(&faults));
        }
        match self.get(provider) {
            None => {
                return Err(Error::new(ErrorKind::NotFound, format!("There is no provider `{provider}`.")));
            }
            Some(definition) if definition.app.is_some() => {
                let message = format!("The app of `{provider}` is managed by the config file.");
                return Err(Error::new(ErrorKind::Conflict, message).hint("Change it in the config file."));
            }
            Some(_) => {}
        }
        let _change = self.0.change_lock.lock().await;
        if let Some(secret) = form.text(CLIENT_SECRET) {
            self.0.secret_store.set((&safe_of(provider), provider, CLIENT_SECRET), &Secret::hidden(secret)).await?;
        }
        let form = Object::default().with("client_id", client_id.unwrap_or_default());
        self.0.secret_store.store().documents().take(PROVIDER, provider, now_ms()).await?;
        let entry = DocumentRow {
            kind: PROVIDER,
            id: provider.to_owned(),
            owner: String::new(),
            document: form.raw(),
            version: 1,
            created_at: now_ms(),
            expires_at: 0,
        };
        self.0.secret_store.store().documents().put(&entry).await?;
        self.0.read().await.map(drop)
    }

    pub async fn remove_app(self, provider: &str) -> Result<(), Error> {
        let _change = self.0.change_lock.lock().await;
        let taken = self.0.secret_store.store().documents().take(PROVIDER, provider, now_ms()).await?;
        self.0.secret_store.remove(&safe_of(provider), None).await?;
        self.0.read().await?;
        taken.map(drop).ok_or_else(|| Error::new(ErrorKind::NotFound, format!("No app is stored for `{provider}`.")))
    }
}

/// Checks that a caller may change accounts: not from inside a project, and not with a call-only token. A model must
/// not be able to lift its own restrictions.
pub(super) fn may_change(caller: &Caller) -> Result<(), Error> {
    if caller.project.is_none() && caller.scopes.contains(Scopes::ADMIN) {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Authorization, "You are not allowed to change accounts.")
        .hint("Use a token with the scope `admin` that belongs to no project, or run `hikite account` in a terminal.");
    Err(Error { insufficient_scope: true, ..error })
}

impl AccountStore {
    pub fn check_may_change(caller: &Caller) -> Result<(), Error> {
        may_change(caller)
    }
}

/// Reports the members that are present but not strings.
fn not_text<'a>(form: &'a Object, members: &'a [&str]) -> impl Iterator<Item = Violation> + 'a {
    let wrong = |member: &&&str| form.get(member).is_some_and(|value| value.text().is_none());
    let fault = |member: &&str| Violation::new(violation::step(member), format!("`{member}` must be a string."));
    members.iter().filter(wrong).map(fault)
}

fn unknown_members(form: &Object, known: &[&str]) -> Vec<Violation> {
    let fault = |name: &str| {
        let near = suggestion::did_you_mean(name, known.iter().copied());
        let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
        Violation::new(violation::step(name), format!("Unknown member `{name}`.{hint}"))
    };
    form.unknown(known).map(fault).collect()
}

fn unknown(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no account `{id}`."))
        .hint("Run `hikite account list` to see all accounts.")
}

//! The status page for administrators: call figures, token savings, and items that need attention.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::SourceState;
use hikite_core::time::rfc3339;
use hikite_store::{ClockJump, Store};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::paused_accounts;
use super::pin::{PinAdmin, PinFilter};
use crate::accounts::AccountStore;
use crate::answers::Answers;
use crate::audit::{Auditor, QueueFullPolicy};
use crate::batch::Batches;
use crate::catalogs::Catalogs;
use crate::freshness::Freshness;
use crate::meter::{GatewayReading, Meter, Metric, RecentCalls, metrics};
use crate::share::SlotUsage;
use crate::token_savings::TokenSavings;
use hikite_identity::People;

/// An item that needs attention.
struct AttentionItem {
    kind: &'static str,
    name: String,
    message: String,
    hint: String,
}

impl AttentionItem {
    fn raw(&self) -> Raw {
        Object::default()
            .with("kind", self.kind)
            .with("name", self.name.as_str())
            .with("message", self.message.as_str())
            .with("hint", self.hint.as_str())
            .raw()
    }
}

pub struct Status {
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) store: Store,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) freshness: Arc<Freshness>,
    pub(crate) token_savings: Arc<TokenSavings>,
    pub(crate) people: Arc<People>,
    pub(crate) accounts: Option<Arc<AccountStore>>,
    pub(crate) pins: Arc<PinAdmin>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) batches: Arc<Batches>,
    /// Error of the config file while an older version is in force.
    pub(crate) config_error: Mutex<Option<String>>,
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Status").finish_non_exhaustive()
    }
}

impl Status {
    /// Returns all metrics of the gateway.
    pub fn metrics(&self) -> Vec<Metric> {
        metrics(&GatewayReading {
            snapshot: &self.catalogs.snapshot(),
            meter: &self.meter,
            freshness: &self.freshness,
            views: self.catalogs.view_counts(),
            audit: self.auditor.counts(),
        })
    }

    /// Returns the usage of shared limits, by holder.
    pub fn usages(&self) -> Vec<SlotUsage> {
        let clients = self.people.identity().and_then(|identity| identity.client_usage());
        [self.batches.slots.usage(), self.answers.jq_slots.usage()].into_iter().chain(clients).collect()
    }

    /// Returns `{calls, saved, audit, attention}`.
    pub async fn report(&self) -> Result<Object, Error> {
        let mut calls = RecentCalls::default();
        let now = Instant::now();
        for gate in self.catalogs.snapshot().gates().values() {
            calls.add(&gate.meter.recent.calls(now));
        }
        let mut concerns = self.troubled_config();
        concerns.extend(self.troubled_audit());
        concerns.extend(self.troubled_modules());
        concerns.extend(self.paused_accounts_of_all());
        concerns.extend(self.troubled_accounts());
        concerns.extend(self.waiting_clients().await?);
        concerns.extend(self.waiting_pins());
        concerns.extend(self.auditor.clock_jump().await?.map(of_clock));
        let concerns: Vec<Raw> = concerns.iter().map(AttentionItem::raw).collect();
        Ok(Object::default()
            .with("calls", calls.object())
            .with("saved", self.token_savings.saved().await?)
            .with("audit", self.audit_status())
            .with("attention", Raw::array(&concerns)))
    }

    /// Returns the durability setting and the number of records not written yet.
    fn audit_status(&self) -> Object {
        let Some(state) = self.auditor.state() else {
            return Object::default().with("enabled", Raw::of(&false));
        };
        let when_full = match state.when_full {
            QueueFullPolicy::Block => "block",
            QueueFullPolicy::DropAndCount => "drop-and-count",
        };
        Object::default()
            .with("enabled", Raw::of(&true))
            .with("durability", state.durability.name())
            .with("whenFull", when_full)
            .with("waiting", Raw::of(&state.waiting))
            .with("accepts", Raw::of(&!state.is_full))
    }

    /// Returns concerns about a store that accepts no records, and about lost records.
    fn troubled_audit(&self) -> Vec<AttentionItem> {
        let concern =
            |message, hint: &str| AttentionItem { kind: "audit", name: "audit".into(), message, hint: hint.into() };
        let mut concerns = Vec::new();
        if let Some(state) = self.auditor.state()
            && let Some(why) = &state.trouble
        {
            let then = if state.is_full { "calls are rejected" } else { "records are queued in memory" };
            let message = format!("The store {why}: {then}.");
            concerns.push(concern(message, "Free disk space or bring the database back; hikite recovers on its own."));
        }
        let damage = Store::known_damage(self.store.url());
        let hint = "Restore a backup with `hikite store restore`, or accept the loss; `hikite doctor` explains how.";
        concerns.extend(damage.into_iter().map(|what| concern(what, hint)));
        concerns
    }

    /// Sets the error of the current config file while an older config stays active; `None` once the file is valid.
    pub fn set_config_error(&self, wrong: Option<String>) {
        if wrong.is_some() {
            self.meter.reload_failed();
        }
        *self.config_error.lock() = wrong;
    }

    fn troubled_config(&self) -> Vec<AttentionItem> {
        let concern = |message| AttentionItem {
            kind: "config",
            name: "config".into(),
            message,
            hint: "The previous config stays active until the file is corrected.".into(),
        };
        self.config_error.lock().clone().map(concern).into_iter().collect()
    }

    fn troubled_modules(&self) -> Vec<AttentionItem> {
        let view = self.catalogs.owner_view();
        let concern = |module: &hikite_core::catalog::Module| {
            let state = module.source.state();
            let (kind, message, hint) = match &state {
                SourceState::Failing { .. } => (
                    "module",
                    state.trouble()?,
                    "Look at its stderr, then restart it or correct its connection settings.".into(),
                ),
                // A service without an account needs no attention; a server that requires a login does.
                SourceState::NeedsLogin { .. } if module.source.kind() != "service" => {
                    let hint = module.source.login_hint().unwrap_or_else(|| "Log in to it.".into());
                    ("login", format!("`{}` requires a login.", module.name), hint)
                }
                _ => return None,
            };
            Some(AttentionItem { kind, name: module.name.to_string(), message, hint })
        };
        view.modules().iter().filter_map(concern).collect()
    }

    /// Returns the accounts whose circuit breaker is not closed, by module.
    fn paused_accounts_of_all(&self) -> Vec<AttentionItem> {
        let (snapshot, view) = (self.catalogs.snapshot(), self.catalogs.owner_view());
        let mut concerns = Vec::new();
        for module in view.modules() {
            let Some(gate) = snapshot.gates().get(&module.name) else { continue };
            for (account, state) in paused_accounts(self.accounts.as_ref(), &Caller::owner(), module, &gate.health) {
                concerns.push(AttentionItem {
                    kind: "module",
                    name: module.name.to_string(),
                    message: format!("Calls of `{}` with the account `{account}` fail: {}", module.name, state.word()),
                    hint:
                        "Other accounts are not affected. hikite retries on its own, or at once after a restart of the \
                     module."
                            .into(),
                });
            }
        }
        concerns
    }

    fn troubled_accounts(&self) -> Vec<AttentionItem> {
        let Some(accounts) = &self.accounts else { return Vec::new() };
        let objects = accounts.objects(&Caller::owner(), true);
        let stale = objects.iter().filter_map(Raw::object);
        let is_unclear = |account: &Object| {
            account.text("state").as_deref() == Some("unverified") && account.text("problem").is_some()
        };
        let is_lost = |account: &Object| account.text("state").as_deref() == Some("reconnect");
        stale
            .filter(|account| is_lost(account) || is_unclear(account))
            .map(|account| {
                let word = |name: &str| account.text(name).unwrap_or_default();
                if is_unclear(&account) {
                    let (provider, name) = (word("provider"), word("name"));
                    let message = format!(
                        "{provider} has not confirmed the credential of the account `{name}`: {}",
                        word("problem")
                    );
                    let hint = "Check it again.".into();
                    return AttentionItem { kind: "account", name: word("id"), message, hint };
                }
                AttentionItem {
                    kind: "account",
                    name: word("id"),
                    message: format!(
                        "{} no longer accepts the token of the account `{}`.",
                        word("provider"),
                        word("name")
                    ),
                    hint: "Connect it again.".into(),
                }
            })
            .collect()
    }

    fn waiting_pins(&self) -> Vec<AttentionItem> {
        let waiting = self.pins.tools(&PinFilter::default()).into_iter().filter(|pin| pin.state.needs_review());
        waiting
            .map(|pin| AttentionItem {
                kind: "pin",
                name: pin.key.to_string(),
                message: format!("`{}` is {} and held back.", pin.key, pin.state.word()),
                hint: "Review the difference, then approve or block it.".into(),
            })
            .collect()
    }

    async fn waiting_clients(&self) -> Result<Vec<AttentionItem>, Error> {
        let Some(identity) = self.people.identity() else { return Ok(Vec::new()) };
        let clients = identity.clients().await?;
        let waiting = clients.iter().filter(|client| client.is_pending());
        Ok(waiting
            .map(|client| AttentionItem {
                kind: "client",
                name: client.id.clone(),
                message: format!("The client `{}` is waiting for approval.", client.name),
                hint: "Approve it if you recognize its redirect addresses, or delete it.".into(),
            })
            .collect())
    }
}

/// Returns the concern about a clock jump, which pauses the removal of old records.
fn of_clock(jump: ClockJump) -> AttentionItem {
    let (found, expected) = (rfc3339(jump.found), rfc3339(jump.expected));
    AttentionItem {
        kind: "audit",
        name: "clock".into(),
        message: format!(
            "The clock of the machine jumped: it shows {found}, and {expected} was expected. No records are \
             deleted by age."
        ),
        hint: "Correct the clock, or confirm it with `hikite audit resume-trim`.".into(),
    }
}

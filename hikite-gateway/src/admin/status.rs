//! The status page for administrators: call figures, token savings, and items that need attention.

use std::sync::Arc;

use hikite_api::{AuditStatus, Concern};
use hikite_core::caller::Caller;
use hikite_core::error::Error;
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
    /// Name and faults of each entry of the config file that is left out.
    pub(crate) invalid_entries: Mutex<Vec<(String, String)>>,
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
        let clients = self.people.identity().and_then(|identity| identity.clients().usage());
        [self.batches.slots.usage(), self.answers.jq_slots.usage()].into_iter().chain(clients).collect()
    }

    /// Returns the status without the members that the server knows.
    pub async fn report(&self) -> Result<hikite_api::Status, Error> {
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
        Ok(hikite_api::Status {
            calls: calls.object(),
            saved: self.token_savings.saved().await?,
            audit: self.audit_status(),
            attention: concerns,
            ..hikite_api::Status::default()
        })
    }

    /// Returns the durability setting and the number of records not written yet.
    fn audit_status(&self) -> AuditStatus {
        let Some(state) = self.auditor.state() else { return AuditStatus::default() };
        let when_full = match state.when_full {
            QueueFullPolicy::Block => "block",
            QueueFullPolicy::DropAndCount => "drop-and-count",
        };
        AuditStatus {
            enabled: true,
            durability: Some(state.durability.name().to_owned()),
            when_full: Some(when_full.to_owned()),
            waiting: Some(state.waiting as u64),
            accepts: Some(!state.is_full),
        }
    }

    /// Returns concerns about a store that accepts no records, and about lost records.
    fn troubled_audit(&self) -> Vec<Concern> {
        let concern =
            |message, hint: &str| Concern { kind: "audit".into(), name: "audit".into(), message, hint: hint.into() };
        let mut concerns = Vec::new();
        if let Some(state) = self.auditor.state()
            && let Some(why) = &state.trouble
        {
            let then = if state.is_full { "calls are rejected" } else { "records are queued in memory" };
            let message = format!("The store {why}: {then}.");
            concerns.push(concern(message, "Free disk space or bring the database back; hikite recovers on its own."));
        }
        let damage = hikite_store::known_damage(self.store.url());
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

    /// Sets the name and faults of each entry of the config file that is left out.
    pub fn set_invalid_entries(&self, entries: Vec<(String, String)>) {
        *self.invalid_entries.lock() = entries;
    }

    fn troubled_config(&self) -> Vec<Concern> {
        let concern = |message| Concern {
            kind: "config".into(),
            name: "config".into(),
            message,
            hint: "The previous config stays active until the file is corrected.".into(),
        };
        let invalid = |(name, message): (String, String)| Concern {
            kind: "config".into(),
            name,
            message,
            hint: "Correct the config file, which is read again at once, or set the variable and restart hikite."
                .into(),
        };
        let whole = self.config_error.lock().clone().map(concern);
        let entries = self.invalid_entries.lock().clone().into_iter().map(invalid);
        whole.into_iter().chain(entries).collect()
    }

    fn troubled_modules(&self) -> Vec<Concern> {
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
            Some(Concern { kind: kind.into(), name: module.name.to_string(), message, hint })
        };
        view.modules().iter().filter_map(concern).collect()
    }

    /// Returns the accounts whose circuit breaker is not closed, by module.
    fn paused_accounts_of_all(&self) -> Vec<Concern> {
        let (snapshot, view) = (self.catalogs.snapshot(), self.catalogs.owner_view());
        let mut concerns = Vec::new();
        for module in view.modules() {
            let Some(gate) = snapshot.gates().get(&module.name) else { continue };
            for (account, state) in paused_accounts(self.accounts.as_ref(), &Caller::owner(), module, &gate.health) {
                concerns.push(Concern {
                    kind: "module".into(),
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

    fn troubled_accounts(&self) -> Vec<Concern> {
        let Some(accounts) = &self.accounts else { return Vec::new() };
        let concern = |account: hikite_api::Account| {
            let (provider, name) = (&account.provider, &account.name);
            let (message, hint) = match (&*account.state, &account.problem) {
                ("unverified", Some(problem)) => (
                    format!("{provider} has not confirmed the credential of the account `{name}`: {problem}"),
                    "Check it again.",
                ),
                ("reconnect", _) => {
                    (format!("{provider} no longer accepts the token of the account `{name}`."), "Connect it again.")
                }
                _ => return None,
            };
            Some(Concern { kind: "account".into(), name: account.id, message, hint: hint.into() })
        };
        accounts.objects(&Caller::owner(), true).into_iter().filter_map(concern).collect()
    }

    fn waiting_pins(&self) -> Vec<Concern> {
        let waiting = self.pins.tools(&PinFilter::default()).into_iter().filter(|pin| pin.state.needs_review());
        waiting
            .map(|pin| Concern {
                kind: "pin".into(),
                name: pin.key.to_string(),
                message: format!("`{}` is {} and held back.", pin.key, pin.state.word()),
                hint: "Review the difference, then approve or block it.".into(),
            })
            .collect()
    }

    async fn waiting_clients(&self) -> Result<Vec<Concern>, Error> {
        let Some(identity) = self.people.identity() else { return Ok(Vec::new()) };
        let clients = identity.clients().all().await?;
        let waiting = clients.iter().filter(|client| client.is_pending());
        Ok(waiting
            .map(|client| Concern {
                kind: "client".into(),
                name: client.id.clone(),
                message: format!("The client `{}` is waiting for approval.", client.name),
                hint: "Approve it if you recognize its redirect addresses, or delete it.".into(),
            })
            .collect())
    }
}

/// Returns the concern about a clock jump, which pauses the removal of old records.
fn of_clock(jump: ClockJump) -> Concern {
    let (found, expected) = (rfc3339(jump.found), rfc3339(jump.expected));
    Concern {
        kind: "audit".into(),
        name: "clock".into(),
        message: format!(
            "The clock of the machine jumped: it shows {found}, and {expected} was expected. No records are \
             deleted by age."
        ),
        hint: "Correct the clock, or confirm it with `hikite audit resume-trim`.".into(),
    }
}

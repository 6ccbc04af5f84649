//! `hikite doctor`: checks everything an installation needs, and says how to fix what is wrong.

mod audit;
mod permissions;
pub(super) mod port;
mod program;
mod vault;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use hikite_config::{AuthSection, Config, ServerConfig, TransportConfig, VaultSection};
use hikite_core::catalog::Module;
use hikite_core::listing::SanitizedItem;
use hikite_core::source::SourceState;
use hikite_core::suggestion::did_you_mean;
use hikite_core::time::rfc3339;
use hikite_gateway::machine_clock;
use hikite_modules::Service;
use hikite_store::{ClockJump, NEWEST, Store, StoreUrl};
use serde_json::{Value, json};

use super::{GlobalArgs, print, program};
use crate::runtime::Runtime;
use crate::{exposure, progress, services, token};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fix what is safe to fix: permissions of files with secrets
    #[arg(long)]
    fix: bool,
    /// The time that servers have to start, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    wait: u64,
}

/// The result of one check.
struct DoctorFinding {
    what: String,
    level: FindingLevel,
    text: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FindingLevel {
    Good,
    Warning,
    Bad,
}

impl Doctor {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let mut findings = Vec::new();
        match common.load() {
            Ok(config) => {
                findings.extend(config_findings(&config));
                findings.push(token_finding(&config));
                let mut store_results = store_findings(&config).await;
                if store_results[0].level != FindingLevel::Bad {
                    store_results.extend(vault::findings(common).await);
                }
                store_results.extend(audit::findings(&config));
                // The servers are checked even if the store is broken.
                let is_bad = store_results.iter().any(|finding| finding.level == FindingLevel::Bad);
                findings.append(&mut store_results);
                findings.extend(
                    exposure::check(&config).err().map(|wrong| DoctorFinding::bad("listen", wrong.to_string(), None)),
                );
                findings.extend(permissions::findings(&config, self.fix));
                findings.push(port::finding(&config).await);
                findings.extend(module_findings(&config));
                let config = if is_bad { with_memory_store(config) } else { config };
                findings.extend(upstream_findings(&config, Duration::from_secs(self.wait)).await?);
            }
            Err(error) => findings.push(DoctorFinding::bad("config", format!("{error:#}"), None)),
        }
        if self.json {
            print(&findings.iter().map(DoctorFinding::json).collect::<Value>().to_string());
        } else {
            print(&findings.iter().map(DoctorFinding::text).collect::<Vec<_>>().join("\n"));
        }
        let bad = findings.iter().any(|finding| finding.level == FindingLevel::Bad);
        Ok(ExitCode::from(u8::from(bad)))
    }
}

/// Returns the config with an in-memory store and vault.
fn with_memory_store(config: Config) -> Config {
    Config { store: Some(StoreUrl::memory()), vault: VaultSection::default(), ..config }
}

fn config_findings(config: &Config) -> Vec<DoctorFinding> {
    let file = config.file.as_deref().map_or_else(|| "no file, defaults".into(), |file| file.display().to_string());
    let text = format!("{file}: {} servers, {} categories", config.servers.len(), config.categories.len());
    let hint = config.servers.is_empty().then(|| {
        "Add one with `hikite add`, or take over those of your clients with `hikite import --write`.".to_owned()
    });
    let level = if hint.is_some() { FindingLevel::Warning } else { FindingLevel::Good };
    let first = DoctorFinding { what: "config".into(), level, text, hint };
    let warnings = config.warnings.iter().map(|warning| DoctorFinding {
        what: "config".into(),
        level: FindingLevel::Warning,
        text: warning.clone(),
        hint: None,
    });
    let invalid = config.invalid.iter().map(|entry| DoctorFinding::bad("config", entry.to_string(), None));
    let advice = config.advice().map(|advice| DoctorFinding::good("config", advice));
    std::iter::once(first).chain(warnings).chain(invalid).chain(advice).collect()
}

fn token_finding(config: &Config) -> DoctorFinding {
    match &config.auth {
        AuthSection::None => DoctorFinding {
            what: "auth".into(),
            level: FindingLevel::Warning,
            text: "`auth.mode` is \"none\": every program on this machine may call every tool".into(),
            hint: Some("Remove `auth.mode` to require the local token.".into()),
        },
        AuthSection::Token(Some(_)) => DoctorFinding::good("auth", "the token is set in the config"),
        AuthSection::Token(None) => match token::local_token(&config.data) {
            Ok(_) => {
                DoctorFinding::good("auth", format!("the local token is in {}", token::path(&config.data).display()))
            }
            Err(error) => DoctorFinding::bad("auth", format!("{error:#}"), None),
        },
    }
}

/// Checks the store briefly, and the clock used for removals.
async fn store_findings(config: &Config) -> Vec<DoctorFinding> {
    let store = match Store::open_with_backup(&config.store_url(), &config.data).await {
        Ok(store) => store,
        Err(error) => return vec![DoctorFinding::bad("store", error.to_string(), None)],
    };
    let outcome = progress::with_spinner("checking the store", store.check_briefly()).await;
    let clock = store.clock().jump(&machine_clock()).await;
    store.close().await;
    let first = match outcome {
        Ok(wrong) if wrong.is_empty() => {
            let text = "is fine at first sight; `hikite store check` checks all of it";
            DoctorFinding::good("store", format!("{} {text} (version {NEWEST})", store.url()))
        }
        Ok(wrong) => {
            let hint = "Restore a backup made with `hikite store backup`, or register the unreadable tools again.";
            DoctorFinding::bad("store", wrong.join("\n  "), Some(hint.into()))
        }
        Err(error) => DoctorFinding::bad("store", error.to_string(), None),
    };
    std::iter::once(first).chain(clock.ok().flatten().map(clock_finding)).collect()
}

/// Reports a clock jump, which stops removals by age.
fn clock_finding(jump: ClockJump) -> DoctorFinding {
    let (found, expected) = (rfc3339(jump.found), rfc3339(jump.expected));
    DoctorFinding {
        what: "audit".into(),
        level: FindingLevel::Warning,
        text: format!(
            "the clock of this machine jumped: it shows {found}, and {expected} was expected; no records are \
             deleted by age"
        ),
        hint: Some("Correct the clock, or confirm it with `hikite audit resume-trim`.".into()),
    }
}

/// Reports invalid modules and accounts that no module uses.
fn module_findings(config: &Config) -> Vec<DoctorFinding> {
    let settings = services::settings(Some(config));
    let configured = services::configured(config, &settings);
    let mut findings = Vec::new();
    for module in &configured {
        if let (Err(faults), Some(file)) = (&module.read, &module.file) {
            let hint = format!("Run `hikite module check {file}` after you change it.");
            findings.push(DoctorFinding::bad("module", services::shown(file, faults), Some(hint)));
        }
    }
    let used: Vec<&Service> = configured
        .iter()
        .filter(|module| module.hidden_by.is_none())
        .filter_map(|module| module.read.as_ref().ok())
        .collect();
    for provider in &config.providers {
        if !used.iter().any(|service| service.provider() == Some(&provider.name)) {
            let known = used.iter().filter_map(|service| service.provider());
            findings.push(DoctorFinding {
                what: format!("provider {}", provider.name),
                level: FindingLevel::Warning,
                text: "no module uses this account".into(),
                hint: did_you_mean(&provider.name, known),
            });
        }
    }
    findings
}

async fn upstream_findings(config: &Config, wait: Duration) -> Result<Vec<DoctorFinding>> {
    let runtime = Runtime::start(config, program()?).await?;
    progress::wait_for_all(&runtime.gateway, wait.min(runtime.limits.start_timeout)).await;
    let view = runtime.gateway.catalogs().owner_view();
    let mut findings = Vec::new();
    for module in view.modules() {
        let is_server = config.servers.iter().any(|server| server.name == module.name);
        let what = format!("{} {}", if is_server { "server" } else { "module" }, module.name);
        match (&module.listing, module.source.state()) {
            (_, SourceState::NeedsLogin { .. }) if is_server => findings.push(DoctorFinding {
                what: what.clone(),
                level: FindingLevel::Warning,
                text: "requires a login".into(),
                hint: module.source.login_hint(),
            }),
            // A service without an account is not a problem.
            (_, SourceState::NeedsLogin { .. }) => {}
            (Some(listing), _) => {
                findings.push(DoctorFinding::good(&what, format!("{} tools", listing.tools.len())));
            }
            (None, _) => {
                let server = config.servers.iter().find(|server| server.name == module.name);
                findings.push(failed_server(&what, module, server, &runtime.stderr_of(&module.name), wait));
            }
        }
        for name in &module.unresolved {
            findings.push(unresolved(&what, name));
        }
        findings.extend(held(&what, module));
        let sanitized = module.listing.iter().flat_map(|listing| &listing.sanitized);
        findings.extend(sanitized.map(|sanitized| hidden(&what, sanitized)));
    }
    for category in view.categories() {
        for name in &category.unresolved {
            findings.push(unresolved(&format!("category {}", category.rule.name), name));
        }
    }
    runtime.stop().await;
    Ok(findings)
}

const SLOW_START: &str =
    "The first start of `npx` or `uvx` downloads packages: give it time with `hikite doctor --wait 60`.";

/// Explains why a server has no tools: its program is missing, it is slow, or it failed by itself.
fn failed_server(
    what: &str,
    module: &Module,
    server: Option<&ServerConfig>,
    stderr: &[String],
    wait: Duration,
) -> DoctorFinding {
    if let Some(TransportConfig::Stdio { command, env, .. }) = server.map(|server| &server.transport) {
        let path = env.iter().find(|(name, _)| *name == "PATH").map(|(_, path)| path.expose());
        if let Some(hint) = program::missing(command, path) {
            return DoctorFinding::bad(what, format!("its program `{command}` is not installed"), Some(hint));
        }
    }
    let tail = stderr.iter().rev().take(5).rev().cloned().collect::<Vec<_>>().join("\n    ");
    let tail = (!tail.is_empty()).then(|| format!("Its stderr ends with:\n    {tail}"));
    let url = module.source.place().text("url");
    match module.source.state().trouble() {
        Some(reason) => DoctorFinding::bad(what, reason, tail.or_else(|| url.as_deref().map(check_url))),
        None => DoctorFinding {
            what: what.into(),
            level: FindingLevel::Warning,
            text: format!("is still starting after {} s", wait.as_secs()),
            hint: tail.or_else(|| Some(SLOW_START.into())),
        },
    }
}

fn check_url(url: &str) -> String {
    format!("Check that the server runs and that its `url` is right: `curl -i {url}` shows what answers there.")
}

/// Reports tools that wait for approval.
fn held(what: &str, module: &Module) -> Option<DoctorFinding> {
    let names: Vec<&str> = module.held.iter().map(|held| &*held.key.tool).collect();
    (!names.is_empty()).then(|| DoctorFinding {
        what: what.into(),
        level: FindingLevel::Warning,
        text: format!("held back until approved: {}", names.join(", ")),
        hint: Some("Run `hikite pin list` to see why.".into()),
    })
}

/// Reports invisible characters that were removed.
fn hidden(what: &str, sanitized: &SanitizedItem) -> DoctorFinding {
    let SanitizedItem { kind, name, removed, left_out } = sanitized;
    let done = if *left_out { "is skipped because they are in its name" } else { "is shown without them" };
    DoctorFinding {
        what: what.into(),
        level: FindingLevel::Warning,
        text: format!("{removed} invisible characters: {} {done}", format!("{kind} {name}").trim()),
        hint: Some("Ask the author of the server about them.".into()),
    }
}

fn unresolved(what: &str, name: &str) -> DoctorFinding {
    DoctorFinding {
        what: what.into(),
        level: FindingLevel::Warning,
        text: format!("`{name}` is listed, but no server has it"),
        hint: Some("Run `hikite tools list` to see the available names.".into()),
    }
}

impl DoctorFinding {
    fn good(what: &str, text: impl Into<String>) -> Self {
        Self { what: what.into(), level: FindingLevel::Good, text: text.into(), hint: None }
    }

    fn bad(what: &str, text: impl Into<String>, hint: Option<String>) -> Self {
        Self { what: what.into(), level: FindingLevel::Bad, text: text.into(), hint }
    }

    fn word(&self) -> &'static str {
        match self.level {
            FindingLevel::Good => "ok",
            FindingLevel::Warning => "warning",
            FindingLevel::Bad => "error",
        }
    }

    fn json(&self) -> Value {
        json!({ "what": self.what, "level": self.word(), "text": self.text, "hint": self.hint })
    }

    fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        format!("{:7} {}: {}{hint}", self.word(), self.what, self.text)
    }
}

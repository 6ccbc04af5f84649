//! `hikite pin`: approves and blocks tool definitions. A running hikite picks up the changes.

mod show;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_gateway::{PinFilter, PinState, WaitingPin};

use super::store_session::{at_terminal, table};
use super::{GlobalArgs, note, print, program};
use crate::progress;
use crate::runtime::Runtime;

#[derive(Debug, Subcommand)]
pub(crate) enum PinCommand {
    /// List approved tools and tools waiting for approval
    List(PinListArgs),
    /// Show the approved and the current definition of a tool and their differences
    Show(PinShowArgs),
    /// Approve tools as they are now
    Approve(PinApproveArgs),
    /// Hold tools back until they are approved
    Block(PinBlockArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PinListArgs {
    /// Only pins in this state: ok, changed, new, blocked
    #[arg(long, value_parser = state)]
    state: Option<PinState>,
    /// Only the tools of this module
    #[arg(long)]
    module: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PinShowArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PinApproveArgs {
    #[command(flatten)]
    which: PinSelectionArgs,
    /// Only if the tool's current definition has this hash, as shown by `hikite pin show`
    #[arg(long)]
    hash: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PinBlockArgs {
    #[command(flatten)]
    which: PinSelectionArgs,
}

#[derive(Debug, Args)]
struct PinSelectionArgs {
    /// `module:tool`, or only the name if it is unique; can be repeated
    tools: Vec<String>,
    /// All tools of this module: those waiting when approving, every tool when blocking
    #[arg(long, conflicts_with = "tools")]
    module: Option<String>,
    /// All tools of all modules
    #[arg(long, conflicts_with_all = ["tools", "module"])]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn state(word: &str) -> Result<PinState, String> {
    let words = PinState::ALL.map(PinState::word).join(", ");
    PinState::of_word(word).ok_or_else(|| format!("one of: {words}"))
}

impl PinCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let runtime = Runtime::start(&common.load()?, program()?).await?;
        progress::wait_for_all(&runtime.gateway, runtime.limits.start_timeout).await;
        let outcome = match self {
            Self::List(list) => {
                list.print(&runtime);
                Ok(())
            }
            Self::Show(show) => show.print(&runtime).await,
            Self::Approve(approve) => approve.run(&runtime).await,
            Self::Block(block) => block.run(&runtime).await,
        };
        runtime.stop().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

impl PinListArgs {
    fn print(self, runtime: &Runtime) {
        let pins = runtime.gateway.admin().pins.list(&PinFilter { state: self.state, module: self.module });
        if self.json {
            return print(&Raw::array(&pins).as_str());
        }
        let pins: Vec<Object> = pins.iter().filter_map(Raw::object).collect();
        let rows = pins.iter().map(|pin| {
            let offered = pin.get("offered").is_some_and(|offered| offered.decode().unwrap_or(false));
            let absent = if offered { "" } else { "not offered" };
            let text = |name| pin.text(name).unwrap_or_default();
            vec![text("key"), text("state"), text("policy"), absent.to_owned()]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let waiting = pins.iter().filter_map(|pin| PinState::of_word(&pin.text("state")?));
        let waiting = waiting.filter(|state| state.needs_review()).count();
        print(&table(&rows));
        if waiting > 0 {
            note(&format!("{waiting} to review: `hikite pin show TOOL`, then `hikite pin approve TOOL`."));
        }
    }
}

impl PinShowArgs {
    async fn print(self, runtime: &Runtime) -> Result<()> {
        let pin = runtime.gateway.admin().pins.get(&self.tool).await?;
        print(&if self.json { pin.as_str().into_owned() } else { show::text(&pin.object().unwrap_or_default()) });
        Ok(())
    }
}

impl PinApproveArgs {
    async fn run(self, runtime: &Runtime) -> Result<()> {
        if self.hash.is_some() && self.which.tools.len() != 1 {
            bail!("`--hash` belongs to one tool.\nhint: Give the name of that tool.");
        }
        let chosen = self.which.chosen(runtime, |waiting| waiting.state != PinState::Ok && waiting.hash.is_some())?;
        for waiting in &chosen {
            let now = waiting.hash.clone().unwrap_or_default();
            let hash = self.hash.as_deref().map_or(now, Arc::from);
            let key = waiting.key.to_string();
            let one = [(waiting.key.clone(), hash)];
            let work = runtime.gateway.admin().pins.approve_all(&one);
            let who = (&Caller::owner(), &at_terminal("hikite pin"));
            runtime.gateway.auditor().record_admin(who, "pin.approve", &key, work).await?;
        }
        self.which.tell(runtime, &chosen, "approved");
        Ok(())
    }
}

impl PinBlockArgs {
    async fn run(self, runtime: &Runtime) -> Result<()> {
        let chosen = self.which.chosen(runtime, |waiting| waiting.state != PinState::Blocked)?;
        for waiting in &chosen {
            let key = waiting.key.to_string();
            let one = [key.clone()];
            let work = runtime.gateway.admin().pins.block_all(&one);
            let who = (&Caller::owner(), &at_terminal("hikite pin"));
            runtime.gateway.auditor().record_admin(who, "pin.block", &key, work).await?;
        }
        self.which.tell(runtime, &chosen, "blocked");
        Ok(())
    }
}

impl PinSelectionArgs {
    /// Returns the named tools or, for a module or all, those that match `concerns`.
    fn chosen(&self, runtime: &Runtime, concerns: impl Fn(&WaitingPin) -> bool) -> Result<Vec<WaitingPin>> {
        let known = runtime.gateway.admin().pins.tools(&PinFilter { module: self.module.clone(), state: None });
        if self.all || self.module.is_some() {
            return Ok(known.into_iter().filter(concerns).collect());
        }
        if self.tools.is_empty() {
            bail!("No tool was given.\nhint: Give names, `--module NAME` or `--all`.");
        }
        let mut chosen = Vec::new();
        for name in &self.tools {
            let key: ToolKey = runtime.gateway.admin().pins.key(name)?;
            chosen.extend(known.iter().filter(|waiting| waiting.key == key).cloned());
        }
        Ok(chosen)
    }

    fn tell(&self, runtime: &Runtime, chosen: &[WaitingPin], what: &str) {
        if self.json {
            let pins = runtime.gateway.admin().pins.list(&PinFilter::default());
            let is_chosen = |pin: &&Raw| {
                let key = pin.object().and_then(|pin| pin.text("key"));
                chosen.iter().any(|waiting| Some(waiting.key.to_string()) == key)
            };
            return print(&Raw::array(pins.iter().filter(is_chosen)).as_str());
        }
        for waiting in chosen {
            note(&format!("`{}` is {what}.", waiting.key));
        }
        if chosen.is_empty() {
            note(&format!("There is nothing to be {what}."));
        }
    }
}

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

use super::people::{at_terminal, table};
use super::{Common, note, print, program};
use crate::house::House;
use crate::progress;

#[derive(Debug, Subcommand)]
pub(crate) enum PinCommand {
    /// List the tools that are approved, and those that wait for it
    List(List),
    /// Show what was approved of a tool, what is offered now, and what differs
    Show(Show),
    /// Approve tools as they are now
    Approve(Approve),
    /// Hold tools back until they are approved
    Block(Block),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state: ok, changed, new, blocked
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
pub(crate) struct Show {
    /// `module:tool`, or the name alone where it is the only one
    tool: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    which: Which,
    /// Only if this is what the one tool is now, as `hikite pin show` told it
    #[arg(long)]
    hash: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Block {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// `module:tool`, or the name alone where it is the only one; several are fine
    tools: Vec<String>,
    /// All of this module: those that wait where they are approved, every one where they are blocked
    #[arg(long, conflicts_with = "tools")]
    module: Option<String>,
    /// The same of all modules
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
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let house = House::start(&common.load()?, program()?).await?;
        progress::wait_for_all(&house.gateway, house.limits.start_timeout).await;
        let outcome = match self {
            Self::List(list) => {
                list.print(&house);
                Ok(())
            }
            Self::Show(show) => show.print(&house).await,
            Self::Approve(approve) => approve.run(&house).await,
            Self::Block(block) => block.run(&house).await,
        };
        house.stop().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

impl List {
    fn print(self, house: &House) {
        let pins = house.gateway.pins(&PinFilter { state: self.state, module: self.module });
        if self.json {
            return print(&Raw::array(&pins).as_str());
        }
        let pins: Vec<Object> = pins.iter().filter_map(Raw::object).collect();
        let rows = pins.iter().map(|pin| {
            let offered = pin.get("offered").is_some_and(|offered| offered.decode().unwrap_or(false));
            let absent = if offered { "" } else { "not offered now" };
            let text = |name| pin.text(name).unwrap_or_default();
            vec![text("key"), text("state"), text("policy"), absent.to_owned()]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let waiting = pins.iter().filter_map(|pin| PinState::of_word(&pin.text("state")?));
        let waiting = waiting.filter(|state| state.waits()).count();
        print(&table(&rows));
        if waiting > 0 {
            note(&format!(
                "{waiting} to be looked at: `hikite pin show TOOL`, then `hikite pin approve TOOL`"
            ));
        }
    }
}

impl Show {
    async fn print(self, house: &House) -> Result<()> {
        let pin = house.gateway.pin(&self.tool).await?;
        print(&if self.json {
            pin.as_str().into_owned()
        } else {
            show::text(&pin.object().unwrap_or_default())
        });
        Ok(())
    }
}

impl Approve {
    async fn run(self, house: &House) -> Result<()> {
        if self.hash.is_some() && self.which.tools.len() != 1 {
            bail!("`--hash` is of one tool\nhint: name that tool");
        }
        let chosen =
            self.which.chosen(house, |waiting| waiting.state != PinState::Ok && waiting.hash.is_some())?;
        for waiting in &chosen {
            let now = waiting.hash.clone().unwrap_or_default();
            let hash = self.hash.as_deref().map_or(now, Arc::from);
            let key = waiting.key.to_string();
            let one = [(waiting.key.clone(), hash)];
            let work = house.gateway.approve_pins(&one);
            let who = (&Caller::owner(), &at_terminal("hikite pin"));
            house.gateway.audit_admin(who, "pin.approve", &key, work).await?;
        }
        self.which.tell(house, &chosen, "approved");
        Ok(())
    }
}

impl Block {
    async fn run(self, house: &House) -> Result<()> {
        let chosen = self.which.chosen(house, |waiting| waiting.state != PinState::Blocked)?;
        for waiting in &chosen {
            let key = waiting.key.to_string();
            let one = [key.clone()];
            let work = house.gateway.block_pins(&one);
            let who = (&Caller::owner(), &at_terminal("hikite pin"));
            house.gateway.audit_admin(who, "pin.block", &key, work).await?;
        }
        self.which.tell(house, &chosen, "blocked");
        Ok(())
    }
}

impl Which {
    /// Returns the named tools or, for a module or all, those that match `concerns`.
    fn chosen(&self, house: &House, concerns: impl Fn(&WaitingPin) -> bool) -> Result<Vec<WaitingPin>> {
        let known = house.gateway.pinned_tools(&PinFilter { module: self.module.clone(), state: None });
        if self.all || self.module.is_some() {
            return Ok(known.into_iter().filter(concerns).collect());
        }
        if self.tools.is_empty() {
            bail!("which tools?\nhint: name them, or say `--module NAME` or `--all`");
        }
        let mut chosen = Vec::new();
        for name in &self.tools {
            let key: ToolKey = house.gateway.pin_key(name)?;
            chosen.extend(known.iter().filter(|waiting| waiting.key == key).cloned());
        }
        Ok(chosen)
    }

    fn tell(&self, house: &House, chosen: &[WaitingPin], what: &str) {
        if self.json {
            let pins = house.gateway.pins(&PinFilter::default());
            let is_chosen = |pin: &&Raw| {
                let key = pin.object().and_then(|pin| pin.text("key"));
                chosen.iter().any(|waiting| Some(waiting.key.to_string()) == key)
            };
            return print(&Raw::array(pins.iter().filter(is_chosen)).as_str());
        }
        for waiting in chosen {
            note(&format!("`{}` is {what}", waiting.key));
        }
        if chosen.is_empty() {
            note(&format!("there is nothing to be {what}"));
        }
    }
}

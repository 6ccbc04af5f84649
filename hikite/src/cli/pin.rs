//! `hikite pin`: approves and blocks tool definitions, at the running hikite if there is one. Otherwise a hikite that
//! is started later picks up the changes.

mod pins;
mod show;

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_gateway::{PinFilter, PinState};

use super::serve::listen_flag;
use super::store_session::table;
use super::{GlobalArgs, note, print};
use pins::Pins;

#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The address of the running hikite, which is asked if it responds [default: from the config]
    #[arg(long, global = true, value_name = "ADDR", env = "HIKITE_LISTEN", value_parser = listen_flag)]
    listen: Option<SocketAddr>,
    #[command(subcommand)]
    command: PinCommand,
}

#[derive(Debug, Subcommand)]
enum PinCommand {
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
struct PinListArgs {
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
struct PinShowArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PinApproveArgs {
    #[command(flatten)]
    which: PinSelectionArgs,
    /// Only if the tool's current definition has this hash, as shown by `hikite pin show`
    #[arg(long)]
    hash: Option<String>,
}

#[derive(Debug, Args)]
struct PinBlockArgs {
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

impl PinArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let pins = Pins::open(common, self.listen).await?;
        let outcome = match self.command {
            PinCommand::List(list) => list.print(&pins).await,
            PinCommand::Show(show) => show.print(&pins).await,
            PinCommand::Approve(approve) => approve.run(&pins).await,
            PinCommand::Block(block) => block.run(&pins).await,
        };
        pins.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

impl PinListArgs {
    async fn print(self, pins: &Pins) -> Result<()> {
        let listed = pins.list(&PinFilter { state: self.state, module: self.module }).await?;
        if self.json {
            print(&array(&listed));
            return Ok(());
        }
        let rows = listed.iter().map(|pin| {
            let offered = pin.get("offered").is_some_and(|offered| offered.decode().unwrap_or(false));
            let absent = if offered { "" } else { "not offered" };
            let text = |name| pin.text(name).unwrap_or_default();
            vec![text("key"), text("state"), text("policy"), absent.to_owned()]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let waiting = listed.iter().filter_map(state_of).filter(|state| state.needs_review()).count();
        print(&table(&rows));
        if waiting > 0 {
            note(&format!("{waiting} to review: `hikite pin show TOOL`, then `hikite pin approve TOOL`."));
        }
        Ok(())
    }
}

impl PinShowArgs {
    async fn print(self, pins: &Pins) -> Result<()> {
        let pin = pins.get(&self.tool).await?;
        print(&if self.json { pin.raw().as_str().into_owned() } else { show::text(&pin) });
        Ok(())
    }
}

impl PinApproveArgs {
    async fn run(self, pins: &Pins) -> Result<()> {
        if self.hash.is_some() && self.which.tools.len() != 1 {
            bail!("`--hash` belongs to one tool.\nhint: Give the name of that tool.");
        }
        let concerns = |pin: &Object| state_of(pin) != Some(PinState::Ok) && pin.text("hash").is_some();
        let chosen = self.which.chosen(pins, concerns).await?;
        for pin in &chosen {
            let key = key_of(pin);
            let Some(now) = pin.text("hash") else {
                bail!(
                    "`{key}` is not offered at the moment, so its definition cannot be reviewed.\nhint: Try again when \
                     its server has returned its tool list."
                );
            };
            pins.approve(&key, self.hash.as_ref().unwrap_or(&now)).await?;
        }
        self.which.tell(pins, &chosen, "approved").await
    }
}

impl PinBlockArgs {
    async fn run(self, pins: &Pins) -> Result<()> {
        let chosen = self.which.chosen(pins, |pin| state_of(pin) != Some(PinState::Blocked)).await?;
        for pin in &chosen {
            pins.block(&key_of(pin)).await?;
        }
        self.which.tell(pins, &chosen, "blocked").await
    }
}

impl PinSelectionArgs {
    /// Returns the named tools or, for a module or all, those that match `concerns`.
    async fn chosen(&self, pins: &Pins, concerns: impl Fn(&Object) -> bool) -> Result<Vec<Object>> {
        if self.all || self.module.is_some() {
            let known = pins.list(&PinFilter { module: self.module.clone(), state: None }).await?;
            return Ok(known.into_iter().filter(concerns).collect());
        }
        if self.tools.is_empty() {
            bail!("No tool was given.\nhint: Give names, `--module NAME` or `--all`.");
        }
        let mut chosen = Vec::new();
        for name in &self.tools {
            chosen.push(pins.get(name).await?);
        }
        Ok(chosen)
    }

    async fn tell(&self, pins: &Pins, chosen: &[Object], what: &str) -> Result<()> {
        let keys: Vec<String> = chosen.iter().map(key_of).collect();
        if self.json {
            let mut now = pins.list(&PinFilter::default()).await?;
            now.retain(|pin| keys.contains(&key_of(pin)));
            print(&array(&now));
            return Ok(());
        }
        for key in &keys {
            note(&format!("`{key}` is {what}."));
        }
        if keys.is_empty() {
            note(&format!("There is nothing to be {what}."));
        }
        Ok(())
    }
}

fn key_of(pin: &Object) -> String {
    pin.text("key").unwrap_or_default()
}

fn state_of(pin: &Object) -> Option<PinState> {
    PinState::of_word(&pin.text("state")?)
}

fn array(pins: &[Object]) -> String {
    let pins: Vec<Raw> = pins.iter().map(Object::raw).collect();
    Raw::array(&pins).as_str().into_owned()
}

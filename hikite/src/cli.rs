//! The command line: global flags, and one file per subcommand. Data goes to stdout, everything else to stderr.

mod account;
mod audit;
mod batch;
mod call;
mod client;
mod completions;
mod config;
mod doctor;
mod eval;
mod guard;
mod health;
pub(crate) mod jq;
mod measure;
mod module;
mod pin;
mod project;
mod provider;
mod register;
mod search;
mod serve;
mod server_login;
mod stdio;
mod store;
mod store_session;
mod token;
mod tools;
mod user;
mod vault;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use hikite_config::log::LogFormat;
use hikite_config::{Config, Problems};
use hikite_core::json::Raw;

use crate::core_dump;
use crate::log;

/// One door between an LLM client and every tool you own.
#[derive(Debug, Parser)]
#[command(name = "hikite", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    common: GlobalArgs,
    #[command(flatten)]
    serve: serve::Serve,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct GlobalArgs {
    /// The config file [default: ./hikite.json, else hikite/hikite.json in the user's config folder]
    #[arg(long, global = true, value_name = "FILE", env = "HIKITE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for what is kept between runs
    #[arg(long, global = true, value_name = "DIR", env = "HIKITE_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// What is logged to stderr: error, warn, info, debug, trace, or directives [default: info for servers]
    #[arg(long, global = true, value_name = "FILTER", env = "HIKITE_LOG")]
    log: Option<String>,
    /// How logs are written [default: text]
    #[arg(long, global = true, value_enum, env = "HIKITE_LOG_FORMAT")]
    log_format: Option<LogFormatArgument>,
    /// `true` if the command serves clients: then the log settings of the config apply.
    #[arg(skip)]
    serves: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormatArgument {
    /// For people.
    #[value(alias = "pretty")]
    Text,
    /// One JSON object per line, for collectors.
    Json,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve MCP over HTTP (the default)
    Serve(serve::Serve),
    /// Serve MCP on stdin and stdout, for clients that start hikite themselves
    Stdio(stdio::Stdio),
    /// List, search, describe, call, register and switch tools from the terminal
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Call a tool and print its result
    Call(call::CallArgs),
    /// Run many tools, some of which wait for others, and print what they gave
    Batch(batch::BatchArgs),
    /// Check, show and import configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// List, check, begin and import modules: services whose tools are described in files
    #[command(subcommand)]
    Module(module::ModuleCommand),
    /// List, make and change projects: which tools there are for whom
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Make, list and take back personal tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Make, list, mask and take away the people who log in
    #[command(subcommand)]
    User(user::UserCommand),
    /// List, make, approve and take away the programs that log in for them
    #[command(subcommand)]
    Client(client::ClientCommand),
    /// List, show, approve and block the definitions of servers' tools
    #[command(subcommand)]
    Pin(pin::PinCommand),
    /// Look at what search remembers, and make it forget
    #[command(subcommand)]
    Search(search::SearchCommand),
    /// Check, copy and move what is kept between runs
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// List, connect, add and change accounts with services
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Say which app of a provider this hikite is, so that accounts can be connected
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Look after the secrets in the store and the key that opens them
    #[command(subcommand)]
    Vault(vault::VaultCommand),
    /// Look at what was done, verify and export it
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Look at the set-up and say what to do about what is wrong
    Doctor(doctor::Doctor),
    /// Measure how well search finds the right tools
    Eval(eval::Eval),
    /// Count what the tools and their answers cost a model, in tokens
    Measure(measure::Measure),
    /// Ask a running hikite whether it is up
    Health(health::HealthArgs),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

/// Exit code for an invalid config or invalid flags.
const INVALID_SETUP: u8 = 2;

pub fn run() -> ExitCode {
    core_dump::disable();
    let outcome = if let Some(guard) = guard::GuardArgs::from_args(std::env::args_os()) {
        guard.run()
    } else if let Some(jq) = jq::JqArgs::from_args(std::env::args_os()) {
        jq.run()
    } else {
        execute(Cli::parse())
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
            let setup = error.is::<Problems>() || error.is::<InvalidSetup>();
            ExitCode::from(if setup { INVALID_SETUP } else { 1 })
        }
    }
}

fn execute(cli: Cli) -> Result<ExitCode> {
    let Cli { common, serve, command } = cli;
    let command = match command {
        None => CliCommand::Serve(serve),
        Some(CliCommand::Serve(after)) => CliCommand::Serve(after.or(serve)),
        Some(other) => other,
    };
    let serves = matches!(command, CliCommand::Serve(_) | CliCommand::Stdio(_));
    let common = GlobalArgs { serves, ..common };
    let format = common.log_format.map(|format| match format {
        LogFormatArgument::Text => LogFormat::Text,
        LogFormatArgument::Json => LogFormat::Json,
    });
    log::start(common.log.as_deref(), format, if serves { "info" } else { "error" })?;
    if serves {
        hikite_upstream::raise_file_limit();
    }
    match command {
        CliCommand::Serve(serve) => block_on_threads(serve.threads(), serve.run(&common)),
        CliCommand::Stdio(stdio) => block_on(stdio.run(&common)),
        CliCommand::Tools(tools) => block_on(tools.run(&common)),
        CliCommand::Call(call) => block_on(call.run(&common)),
        CliCommand::Batch(batch) => block_on(batch.run(&common)),
        CliCommand::Config(config) => config.run(&common),
        CliCommand::Module(module) => module.run(&common),
        CliCommand::Project(project) => block_on(project.run(&common)),
        CliCommand::Token(token) => block_on(token.run(&common)),
        CliCommand::User(user) => block_on(user.run(&common)),
        CliCommand::Client(client) => block_on(client.run(&common)),
        CliCommand::Pin(pin) => block_on(pin.run(&common)),
        CliCommand::Search(search) => block_on(search.run(&common)),
        CliCommand::Store(store) => block_on(store.run(&common)),
        CliCommand::Account(account) => block_on(account.run(&common)),
        CliCommand::Provider(provider) => block_on(provider.run(&common)),
        CliCommand::Vault(vault) => block_on(vault.run(&common)),
        CliCommand::Audit(audit) => block_on(audit.run(&common)),
        CliCommand::Doctor(doctor) => block_on(doctor.run(&common)),
        CliCommand::Eval(eval) => block_on(eval.run(&common)),
        CliCommand::Measure(measure) => block_on(measure.run(&common)),
        CliCommand::Health(health) => block_on(health.run(&common)),
        CliCommand::Completions(completions) => Ok(completions.run(&mut Cli::command())),
    }
}

impl GlobalArgs {
    /// Loads the config with the flags applied, and logs its warnings.
    pub(crate) fn load(&self) -> Result<Config> {
        let mut config = Config::load(self.config.as_deref(), &|name| std::env::var(name).ok())?;
        if self.serves {
            log::follow(&config.telemetry.log);
        }
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        if let Some(data) = &self.data {
            config.data = std::path::absolute(data).context("`--data` is no folder")?;
        }
        Ok(config)
    }
}

/// A config or flag combination that must not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidSetup(pub(crate) String);

fn block_on(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    block_on_threads(serve::default_threads(), command)
}

fn block_on_threads(threads: usize, command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let outcome = runtime.block_on(command);
    // A blocked read of stdin cannot be cancelled and must not keep the program alive.
    runtime.shutdown_timeout(Duration::from_millis(100));
    outcome
}

/// Returns the path of this binary, which also guards the processes of stdio servers.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot tell where the hikite program is")
}

fn print_error(error: &anyhow::Error) {
    let text = match error.downcast_ref::<hikite_core::error::Error>() {
        Some(error) => format_error(error),
        None => format!("{error:#}"),
    };
    note(&if text.starts_with("error:") { text } else { format!("error: {text}") });
}

/// Formats the message, or one line per fault where the message only joins them, and the hint.
fn format_error(error: &hikite_core::error::Error) -> String {
    let details = error.details.as_ref().and_then(Raw::items).unwrap_or_default();
    let faults = details.iter().filter_map(Raw::object);
    let faults: Vec<(String, String)> =
        faults.filter_map(|fault| Some((fault.text("pointer")?, fault.text("message")?))).collect();
    let lines: Vec<String> = faults.iter().map(|(pointer, message)| format!("{pointer}: {message}")).collect();
    let is_joined = !faults.is_empty() && faults.iter().all(|(_, message)| error.message.contains(message));
    let mut text = if is_joined { lines.join("\nerror: ") } else { error.message.to_string() };
    if !is_joined {
        text = lines.iter().fold(text, |text, line| format!("{text}\n  {line}"));
    }
    match &error.hint {
        Some(hint) => format!("{text}\nhint: {hint}"),
        None => text,
    }
}

/// Prints data to stdout. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a message to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

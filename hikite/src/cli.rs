//! The command line: global flags, and one file per subcommand. Data goes to stdout, everything else to stderr.

mod account;
mod add;
mod audit;
mod batch;
mod call;
mod catalog;
mod client;
mod completions;
mod config;
mod connect;
mod connect_file;
mod disconnect;
mod doctor;
mod eval;
mod guard;
mod health;
mod import;
pub(crate) mod jq;
mod measure;
mod module;
mod pin;
mod project;
mod provider;
mod register;
mod remove;
mod running_server;
mod search;
mod serve;
mod server;
mod server_login;
mod server_session;
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

/// A self-hosted MCP gateway: one endpoint for all your tools.
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
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "HIKITE_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// The log level for stderr: error, warn, info, debug, trace, or filter directives [default: info for servers]
    #[arg(long, global = true, value_name = "FILTER", env = "HIKITE_LOG")]
    log: Option<String>,
    /// The log format [default: text]
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
    /// Add a server: a program, an address, or one of the catalog
    Add(add::AddArgs),
    /// Remove a server
    Remove(remove::RemoveArgs),
    /// Enable a server or module
    Enable(remove::SwitchArgs),
    /// Disable a server or module
    Disable(remove::SwitchArgs),
    /// Restart a server of the running hikite
    Restart(remove::RestartArgs),
    /// List servers, and approve programs of the store on this machine
    #[command(subcommand)]
    Server(server::ServerCommand),
    /// Find servers in the MCP registry
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    /// List, search, describe, call, register, enable and disable tools
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Call a tool and print its result
    Call(call::CallArgs),
    /// Run several tools with dependencies and print their results
    Batch(batch::BatchArgs),
    /// Write hikite into the config of a client
    Connect(connect::ConnectArgs),
    /// Remove hikite from the config of a client
    Disconnect(disconnect::DisconnectArgs),
    /// Import the servers of other clients
    Import(import::ImportArgs),
    /// Check, show and import configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// List, check, create and import modules, which describe services in files
    #[command(subcommand)]
    Module(module::ModuleCommand),
    /// List, create and change projects, which control who sees which tools
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Create, list and revoke personal tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Create, list, restrict and remove users
    #[command(subcommand)]
    User(user::UserCommand),
    /// List, create, approve and remove OAuth clients
    #[command(subcommand)]
    Client(client::ClientCommand),
    /// List, show, approve and block tool definitions
    Pin(pin::PinArgs),
    /// Show and clear the usage history of search
    #[command(subcommand)]
    Search(search::SearchCommand),
    /// Check, back up, restore and migrate the store
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Log in to a remote server, or connect an account with a service (`account connect`)
    Login(account::AccountConnectArgs),
    /// List, connect, add and change accounts with services
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Set the OAuth app of a provider, so that accounts can be connected
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Manage the secrets in the store and their master key
    #[command(subcommand)]
    Vault(vault::VaultCommand),
    /// List, verify and export the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Check the setup and explain how to fix problems
    Doctor(doctor::Doctor),
    /// Measure how well search finds the right tools
    Eval(eval::Eval),
    /// Count the tokens that tools and their results cost a model
    Measure(measure::Measure),
    /// Check that a running hikite is healthy
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
    let is_serve = matches!(command, CliCommand::Serve(_));
    log::start(common.log.as_deref(), format, if serves { "info" } else { "error" }, is_serve)?;
    if serves {
        hikite_upstream::raise_file_limit();
    }
    match command {
        CliCommand::Serve(serve) => block_on_threads(serve.threads(), serve.run(&common)),
        CliCommand::Stdio(stdio) => block_on(stdio.run(&common)),
        CliCommand::Add(add) => block_on(add.run(&common)),
        CliCommand::Remove(remove) => block_on(remove.run(&common)),
        CliCommand::Enable(switch) => block_on(switch.run(&common, true)),
        CliCommand::Disable(switch) => block_on(switch.run(&common, false)),
        CliCommand::Restart(restart) => block_on(restart.run(&common)),
        CliCommand::Server(command) => block_on(command.run(&common)),
        CliCommand::Catalog(catalog) => block_on(catalog.run(&common)),
        CliCommand::Tools(tools) => block_on(tools.run(&common)),
        CliCommand::Call(call) => block_on(call.run(&common)),
        CliCommand::Batch(batch) => block_on(batch.run(&common)),
        CliCommand::Connect(connect) => block_on(connect.run(&common)),
        CliCommand::Disconnect(disconnect) => block_on(disconnect.run(&common)),
        CliCommand::Import(import) => block_on(import.run(&common)),
        CliCommand::Config(config) => block_on(config.run(&common)),
        CliCommand::Module(module) => module.run(&common),
        CliCommand::Project(project) => block_on(project.run(&common)),
        CliCommand::Token(token) => block_on(token.run(&common)),
        CliCommand::User(user) => block_on(user.run(&common)),
        CliCommand::Client(client) => block_on(client.run(&common)),
        CliCommand::Pin(pin) => block_on(pin.run(&common)),
        CliCommand::Search(search) => block_on(search.run(&common)),
        CliCommand::Store(store) => block_on(store.run(&common)),
        CliCommand::Login(login) => block_on(account::connect(login, &common)),
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
        for entry in &config.invalid {
            tracing::error!("{entry}");
        }
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        if let Some(data) = &self.data {
            config.data = std::path::absolute(data).context("`--data` is not a folder")?;
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
    let runtime = runtime.context("cannot start the async runtime")?;
    let outcome = runtime.block_on(command);
    // A blocked read of stdin cannot be cancelled and must not keep the program alive.
    runtime.shutdown_timeout(Duration::from_millis(100));
    outcome
}

/// Returns the path of this binary, which also guards the processes of stdio servers.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of the hikite program")
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

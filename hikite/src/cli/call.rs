//! `hikite call`: one call of a tool from the terminal, its result on stdout, its failure as the exit code.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hikite_core::caller::{Abilities, Caller, Session, SessionId};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, CallContext, Origin, Question};
use hikite_gateway::{CallOptions, Command, Target};

use super::{Common, note, print, program};
use crate::house::House;

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// `module:tool`, or the name alone where it is the only one
    tool: String,
    /// One argument; the value is JSON where it reads as such, else text
    #[arg(long = "param", short, value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// The arguments as a JSON object; `-` reads it from stdin
    #[arg(long, value_name = "OBJECT")]
    json: Option<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    raw: bool,
}

impl Call {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let text = match self.json.as_deref() {
            Some("-") => Some(std::io::read_to_string(std::io::stdin()).context("cannot read stdin")?),
            _ => self.json,
        };
        let arguments = arguments(text.as_deref(), &self.params)?;
        let house = House::start(&common.load()?, program()?).await?;
        let outcome = call(&house, &self.tool, arguments, self.raw).await;
        house.stop().await;
        outcome
    }
}

/// Calls a tool and prints its result: its text, or all of it as JSON.
pub(crate) async fn call(house: &House, tool: &str, arguments: Object, whole: bool) -> Result<ExitCode> {
    let params = Object::default().with("name", tool).with("arguments", arguments);
    let session = Session { id: SessionId(0), caller: Caller::owner(), abilities: Abilities::default() };
    let context = CallContext {
        session: Arc::new(session),
        back: Arc::new(Terminal),
        origin: Origin::default(),
        takes_rounds: false,
    };
    let command =
        Command::Call { target: Target::Named(tool.to_owned()), params, options: CallOptions::default() };
    let result = house.gateway.dispatch(command, context).await?;
    let members =
        result.object().ok_or_else(|| anyhow!("the tool answered with something else than a result"))?;
    print(&if whole { result.as_str().into_owned() } else { text_of(&members) });
    let failed = members.get("isError").is_some_and(|flag| flag.as_str() == "true");
    Ok(ExitCode::from(u8::from(failed)))
}

/// The arguments as an object, single ones laid over it.
pub(crate) fn arguments(object: Option<&str>, params: &[String]) -> Result<Object> {
    let mut arguments = match object {
        Some(text) => Raw::parse(text.to_owned()).ok().and_then(|raw| raw.object()).with_context(|| {
            format!("`{text}` is not a JSON object\nhint: quote it like '{{\"path\": \".\"}}'")
        })?,
        None => Object::default(),
    };
    for param in params {
        let Some((name, value)) = param.split_once('=') else {
            bail!("`{param}` is not NAME=VALUE");
        };
        arguments.set(name, Raw::parse(value.to_owned()).unwrap_or_else(|_| Raw::from(value)));
    }
    Ok(arguments)
}

/// The terminal as the client of a call: it sees progress, and answers no questions.
struct Terminal;

impl Backchannel for Terminal {
    fn progress(&self, params: Object) {
        let number = |name: &str| params.get(name).map(|value| value.as_str().into_owned());
        let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
        let message = params.text("message").unwrap_or_default();
        note(&format!("{}{total} {message}", number("progress").unwrap_or_default()));
    }

    fn log(&self, params: Raw) {
        tracing::info!("{}", params.as_str());
    }

    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        let refused = Object::default()
            .with("code", Raw::of(&hikite_core::error::Kind::MethodNotFound.face().rpc))
            .with("message", "a terminal call answers no questions");
        Box::pin(async move { Err(refused.raw()) })
    }
}

/// The text of a result; other blocks by their kind.
fn text_of(result: &Object) -> String {
    let blocks = result.get("content").and_then(Raw::items).unwrap_or_default();
    let lines = blocks.iter().filter_map(Raw::object).map(|block| {
        block.text("text").unwrap_or_else(|| format!("[{}]", block.text("type").unwrap_or_default()))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match result.get("structuredContent") {
        Some(structured) if text.is_empty() => format!("{:#}", structured.value()),
        _ => text,
    }
}

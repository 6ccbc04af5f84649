//! `hikite call`: calls one tool from the terminal, prints its result, and reports failure as the exit code.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use hikite_core::caller::{ClientCapabilities, Session, SessionId};
use hikite_core::compact::AnswerFormat;
use hikite_core::json::{Object, Raw};
use hikite_core::selector::Selector;
use hikite_core::source::{Backchannel, BoxFuture, CallContext, CallOrigin, InputRequest};
use hikite_gateway::{CallOptions, Command, Dialect, OutputOptions, ToolTarget, with_account};

use super::{GlobalArgs, note, print, program};
use crate::runtime::Runtime;

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
    /// One argument; the value is JSON if it parses, otherwise text
    #[arg(long = "param", short, value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// The arguments as a JSON object; `-` reads it from stdin
    #[arg(long, value_name = "OBJECT")]
    json: Option<String>,
    /// A part of the result: fields (`number,title,user.login`), a path (`.items[0]`) or a jq program
    #[arg(long, value_name = "WHAT")]
    select: Option<String>,
    /// The result format [default: compact with --select, otherwise unchanged]
    #[arg(long, value_enum)]
    format: Option<ResultFormat>,
    /// The account, if there are several
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    raw: bool,
}

/// Format of a result
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ResultFormat {
    /// In as few tokens as possible
    Compact,
    /// Unchanged
    Raw,
}

impl ResultFormat {
    pub(crate) fn meaning(self) -> AnswerFormat {
        match self {
            Self::Compact => AnswerFormat::Compact,
            Self::Raw => AnswerFormat::Raw,
        }
    }
}

impl CallArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let text = match self.json.as_deref() {
            Some("-") => Some(std::io::read_to_string(std::io::stdin()).context("cannot read stdin")?),
            _ => self.json,
        };
        let arguments = arguments(text.as_deref(), &self.params)?;
        let select = self.select.as_deref().map(Selector::parse).transpose();
        let select = select.map_err(|what| anyhow!("`--select` {what}"))?;
        let wanted = OutputOptions { format: self.format.map(ResultFormat::meaning), select };
        let mut config = common.load()?;
        // The whole result is printed; a stored result would be lost with this process.
        (config.limits.compact_bytes, config.limits.results) = (usize::MAX, 0);
        // The server starts for this call, and its first start may download it.
        config.limits.first_list = config.limits.first_list.max(config.limits.start_timeout);
        let runtime = Runtime::start(&config, program()?).await?;
        let params = Object::default().with("name", self.tool.as_str()).with("arguments", arguments);
        let params = with_account(params, self.account.as_deref());
        let outcome = call_as(&runtime, &self.tool, params, wanted, self.raw).await;
        runtime.stop().await;
        outcome
    }
}

/// Calls a tool and prints its result: its text, or the whole result as JSON.
pub(crate) async fn call(runtime: &Runtime, tool: &str, arguments: Object, whole: bool) -> Result<ExitCode> {
    let params = Object::default().with("name", tool).with("arguments", arguments);
    call_as(runtime, tool, params, OutputOptions::default(), whole).await
}

async fn call_as(
    runtime: &Runtime,
    tool: &str,
    params: Object,
    wanted: OutputOptions,
    whole: bool,
) -> Result<ExitCode> {
    let session = Session {
        id: SessionId(0),
        caller: runtime.gateway.people().owner(),
        client_capabilities: ClientCapabilities::default(),
    };
    let context = CallContext {
        session: Arc::new(session),
        back: Arc::new(TerminalBackchannel),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    };
    let (target, options) = (ToolTarget::Named(tool.to_owned()), CallOptions::default());
    let command = if wanted == OutputOptions::default() {
        Command::Call { target, params, options }
    } else {
        Command::Execute { target, params, options, wanted, dialect: Dialect::Result }
    };
    let result = runtime.gateway.dispatch(command, context).await?;
    let members = result.object().ok_or_else(|| anyhow!("the tool returned something other than a result"))?;
    print(&if whole { result.as_str().into_owned() } else { text_of(&members) });
    let failed = members.get("isError").is_some_and(|flag| flag.as_str() == "true");
    Ok(ExitCode::from(u8::from(failed)))
}

/// Parses the arguments; single parameters override members of the object.
pub(crate) fn arguments(object: Option<&str>, params: &[String]) -> Result<Object> {
    let mut arguments = match object {
        Some(text) => Raw::parse(text.to_owned()).ok().and_then(|raw| raw.object()).with_context(|| {
            format!("`{text}` is not a JSON object\nhint: Quote it, for example '{{\"path\": \".\"}}'.")
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

/// Backchannel of a terminal call: prints progress and answers no questions.
struct TerminalBackchannel;

impl Backchannel for TerminalBackchannel {
    fn progress(&self, params: Object) {
        let number = |name: &str| params.get(name).map(|value| value.as_str().into_owned());
        let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
        let message = params.text("message").unwrap_or_default();
        note(&format!("{}{total} {message}", number("progress").unwrap_or_default()));
    }

    fn log(&self, params: Raw) {
        tracing::info!("{}", params.as_str());
    }

    fn ask(&self, _: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        let refused = Object::default()
            .with("code", Raw::of(&hikite_core::error::ErrorKind::MethodNotFound.definition().rpc))
            .with("message", "Calls from the terminal cannot answer questions.");
        Box::pin(async move { Err(refused.raw()) })
    }
}

/// Returns the text of a result, with other content blocks by their type.
fn text_of(result: &Object) -> String {
    let blocks = result.get("content").and_then(Raw::items).unwrap_or_default();
    let lines = blocks
        .iter()
        .filter_map(Raw::object)
        .map(|block| block.text("text").unwrap_or_else(|| format!("[{}]", block.text("type").unwrap_or_default())));
    let text = lines.collect::<Vec<_>>().join("\n");
    match result.get("structuredContent") {
        Some(structured) if text.is_empty() => format!("{:#}", structured.value()),
        _ => text,
    }
}

//! `hikite batch`: runs a batch of calls from the terminal. Progress goes to stderr, results to stdout; the exit code
//! reports failures.

mod live;
mod show;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use hikite_core::caller::{ClientCapabilities, Session, SessionId};
use hikite_core::error::ErrorKind;
use hikite_core::json::{Object, Raw};
use hikite_core::plan::OnError;
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use hikite_gateway::{BatchReport, Observer, TaskCompletion};

use super::{GlobalArgs, INVALID_SETUP, note, print, print_error, program};
use crate::runtime::Runtime;
use live::LiveBatchProgress;

#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// One task per line, or a JSON array of tasks; `-` reads stdin
    file: String,
    /// Check the batch and show the plan without running it
    #[arg(long)]
    dry_run: bool,
    /// Concurrent calls, at most `limits.batch_concurrency`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: Option<u16>,
    /// The effect of a failure on the other tasks
    #[arg(long, value_enum, default_value = "skip")]
    on_error: OnFailure,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnFailure {
    /// Dependent tasks are skipped
    Skip,
    /// Dependent tasks still run
    Continue,
    /// All other tasks are cancelled
    FailFast,
}

impl From<OnFailure> for OnError {
    fn from(word: OnFailure) -> Self {
        match word {
            OnFailure::Skip => Self::Skip,
            OnFailure::Continue => Self::Continue,
            OnFailure::FailFast => Self::FailFast,
        }
    }
}

impl BatchArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let text = match self.file.as_str() {
            "-" => std::io::read_to_string(std::io::stdin()).context("cannot read stdin")?,
            file => std::fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?,
        };
        let mut config = common.load()?;
        // On a terminal, long output can be scrolled; nothing is stored for later.
        (config.limits.compact_bytes, config.limits.results) = (usize::MAX, 0);
        let runtime = Runtime::start(&config, program()?).await?;
        let outcome = self.execute(&runtime, &text).await;
        runtime.stop().await;
        match outcome {
            Ok(report) => Ok(self.print_report(&report)),
            Err(error) => {
                let wrong = error.kind == ErrorKind::Validation;
                print_error(&error.into());
                Ok(ExitCode::from(if wrong { INVALID_SETUP } else { 1 }))
            }
        }
    }

    async fn execute(&self, runtime: &Runtime, text: &str) -> Result<BatchReport, hikite_core::error::Error> {
        let session = Session {
            id: SessionId(0),
            caller: runtime.gateway.people().owner(),
            client_capabilities: ClientCapabilities::default(),
        };
        let context = CallContext {
            session: Arc::new(session),
            back: Arc::new(NoClient),
            origin: CallOrigin::default(),
            accepts_input_required: false,
            account: None,
        };
        let batch = hikite_gateway::Batch {
            commands: Raw::from(text),
            dry_run: self.dry_run,
            concurrency: self.concurrency.map(usize::from),
            on_error: self.on_error.into(),
            params: Object::default(),
        };
        let terminal = std::io::stderr().is_terminal();
        let observer: Box<dyn Observer> =
            if terminal { Box::new(LiveBatchProgress::default()) } else { Box::new(PlainBatchProgress) };
        runtime.gateway.batches().run("", batch, context, &*observer).await
    }

    fn print_report(&self, report: &BatchReport) -> ExitCode {
        let document = report.document.value();
        print(&match (self.json, self.dry_run) {
            (true, _) => report.document.as_str().into_owned(),
            (false, true) => show::preview(&document),
            (false, false) => show::report(&document),
        });
        let count = |status: &str| document["summary"][status].as_u64().unwrap_or_default();
        let failed = ["error", "timeout", "cancelled"].into_iter().any(|status| count(status) > 0);
        ExitCode::from(u8::from(failed))
    }
}

/// Progress as plain lines, for stderr that is not a terminal.
struct PlainBatchProgress;

impl Observer for PlainBatchProgress {
    fn ends(&self, ending: &TaskCompletion<'_>) {
        note(&ending.to_string());
    }
}

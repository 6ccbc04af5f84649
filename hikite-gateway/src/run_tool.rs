//! Calls of programs: results as plain values instead of tool results.

use hikite_core::compact::AnswerFormat;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::CallContext;
use hikite_core::tool_output::ToolOutput;

use crate::accounts::selection::with_account;
use crate::answers::{CompactOutput, META};
use crate::command::{CallOptions, Command, Dialect, OutputOptions, ResultPart, ToolTarget};
use crate::gateway::Gateway;
use crate::handle::{ResultOwner, is_stored_result};
use crate::off_worker::off_worker;
use crate::surface::arguments;

/// Maximum length of a failed tool's message.
const MESSAGE_CHARS: usize = 2000;

impl Gateway {
    /// Runs a tool and returns the value of its result. An error result becomes an error.
    pub async fn run_tool(
        &self,
        name: &str,
        parameters: Option<Raw>,
        options: CallOptions,
        context: CallContext,
    ) -> Result<ToolOutput, Error> {
        let ran = self.run_tool_as(name, parameters, (options, OutputOptions::default()), context).await;
        ran.map(|(answer, _)| answer)
    }

    /// Runs a tool and returns its result in the requested form, with a description of that form. The default is the
    /// plain value, since programs read JSON. The name may be the handle of a stored result.
    pub async fn run_tool_as(
        &self,
        name: &str,
        parameters: Option<Raw>,
        (options, wanted): (CallOptions, OutputOptions),
        context: CallContext,
    ) -> Result<(ToolOutput, Option<Raw>), Error> {
        self.run_tool_with(name, None, parameters, (options, wanted), context).await
    }

    /// Runs a tool with the named account and returns its result in the requested form.
    pub async fn run_tool_with(
        &self,
        name: &str,
        account: Option<&str>,
        parameters: Option<Raw>,
        (options, wanted): (CallOptions, OutputOptions),
        context: CallContext,
    ) -> Result<(ToolOutput, Option<Raw>), Error> {
        let mut params = with_account(Object::default().with("name", name), account);
        let target = ToolTarget::Named(name.to_owned());
        let command = if is_stored_result(&Object::default().with("uri", name)) {
            let part = ResultPart::read(&arguments(parameters.as_ref())?)?;
            Command::Fetch { uri: name.to_owned(), part, params, dialect: Dialect::Result }
        } else {
            if let Some(parameters) = parameters {
                params.set("arguments", parameters);
            }
            if wanted == OutputOptions::default() {
                Command::Call { target, params, options }
            } else {
                let wanted = OutputOptions { format: wanted.format.or(Some(AnswerFormat::Raw)), ..wanted };
                Command::Execute { target, params, options, wanted, dialect: Dialect::Result }
            }
        };
        let result = self.dispatch_on("rest", command, context).await?;
        let (answer, about) = off_worker(result.bytes().len().saturating_mul(2), || read_with_meta(&result)).await;
        Ok((require_success(name, answer)?, about))
    }

    /// Runs a tool and returns its value, with the compact text that a model would receive and its description.
    pub async fn run_tool_with_preview(
        &self,
        name: &str,
        account: Option<&str>,
        parameters: Option<Raw>,
        (options, OutputOptions { select, .. }): (CallOptions, OutputOptions),
        context: CallContext,
    ) -> Result<(ToolOutput, String, Raw), Error> {
        let mut params = with_account(Object::default().with("name", name), account);
        if let Some(parameters) = parameters.clone() {
            params.set("arguments", parameters);
        }
        let holder = ResultOwner::of(&mut params, &context);
        let command = Command::Call { target: ToolTarget::Named(name.to_owned()), params, options };
        let result = self.dispatch_on("rest", command, context).await?;
        let read = off_worker(result.bytes().len(), || ToolOutput::read(&result)).await;
        let mut answer = require_success(name, read)?;
        let key = name.split_once(':').map(|(module, tool)| ToolKey::new(module, tool));
        let wanted = OutputOptions { format: Some(AnswerFormat::Compact), select };
        let shape = self.answers.shape_of(key.as_ref(), parameters.as_ref(), &result, &wanted, holder.caller()).await;
        if let Some(selector) = &wanted.select {
            answer.value = self.answers.select(selector, answer.value, holder.caller()).await?;
        }
        let budget = self.limits.compact_bytes;
        let shortened = self.answers.shortened(Dialect::Result, &answer.value, shape.as_ref(), budget, &holder).await;
        let CompactOutput { text, mut about } = CompactOutput::of(shortened);
        about.set("bytes", Raw::of(&[answer.value.bytes().len(), text.len()]));
        Ok((answer, text, about.raw()))
    }
}

/// Returns the value of a result, and the description of its form.
fn read_with_meta(result: &Raw) -> (ToolOutput, Option<Raw>) {
    let about = result.object().and_then(|members| members.get("_meta")?.object()?.remove(META));
    let mut answer = ToolOutput::read(result);
    if about.is_some() {
        // Text that happens to be JSON is still text.
        answer.value = Raw::from(answer.text.as_str());
    }
    (answer, about)
}

/// Turns an error result into an error with the tool's own message.
fn require_success(name: &str, answer: ToolOutput) -> Result<ToolOutput, Error> {
    if !answer.failed {
        return Ok(answer);
    }
    let words: String = answer.text.chars().take(MESSAGE_CHARS).collect();
    let message = format!("Tool execution failed: {name}: {words}");
    Err(Error::new(ErrorKind::ToolExecution, message.trim_end_matches([':', ' '])))
}

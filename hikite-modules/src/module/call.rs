//! One tool call: sends its requests in sequence, in parallel or page by page, and builds the result.

use std::hash::{BuildHasher, RandomState};

use futures_util::future::{BoxFuture, try_join_all};
use hikite_core::compact::parse;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::Service;
use super::account::CallAccount;
use super::fetch::{FetchedValue, PageOptions};
use super::tool::{RequestChoice, ServiceTool, StepRule, ToolExecution};
use super::tool_request::ToolRequest;
use crate::scope::VariableScope;

pub(crate) struct ServiceCall<'a> {
    pub(crate) service: &'a Service,
    pub(crate) context: &'a CallContext,
    /// Set if the call may change data.
    pub(crate) writes: bool,
    /// Selected site, if the account has several.
    pub(crate) site: Option<String>,
    /// Set if any site will do, for verification requests.
    pub(crate) any_site: bool,
    /// Jitter for retries, from 0 to 1.
    pub(crate) share: f64,
    pub(super) account: Mutex<Option<CallAccount>>,
}

impl<'a> ServiceCall<'a> {
    pub(crate) fn new(service: &'a Service, context: &'a CallContext, writes: bool, site: Option<String>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "any number between 0 and 1 will do")]
        let share = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        Self { service, context, writes, site, any_site: false, share, account: Mutex::default() }
    }

    pub(crate) async fn run(
        &self,
        tool: &ServiceTool,
        arguments: &VariableScope<'_>,
        page_options: &PageOptions,
    ) -> Result<FetchedValue, Error> {
        let scope = VariableScope::within(arguments)
            .with("call_id", Value::from(format!("{:016x}{:016x}", random(), random())));
        match &tool.work {
            ToolExecution::Compute { value, .. } => {
                let value = value.one(&Value::Null, &scope)?;
                Ok(FetchedValue { value: Raw::of(&value), next: None })
            }
            ToolExecution::Choose(choices) => {
                let choice = choose(choices, &scope)?;
                self.fetch(&choice.tool_request, &scope, page_options).await
            }
            // Lists of steps are fetched completely, unless the tool itself is paginated.
            ToolExecution::Steps { steps, waves, .. } if tool.is_paged() => {
                self.steps(steps, waves, &scope, page_options).await
            }
            ToolExecution::Steps { steps, waves, .. } => {
                let whole = PageOptions { all: true, ..PageOptions::default() };
                self.steps(steps, waves, &scope, &whole).await
            }
        }
    }

    async fn steps(
        &self,
        steps: &[StepRule],
        waves: &[Vec<usize>],
        scope: &VariableScope<'_>,
        page_options: &PageOptions,
    ) -> Result<FetchedValue, Error> {
        let mut results = Map::new();
        let mut scope = VariableScope::within(scope);
        let mut next = None;
        for wave in waves {
            let run = wave.iter().map(|place| self.step(&steps[*place], &scope, page_options));
            let done = try_join_all(run).await?;
            for (place, (value, cursor)) in wave.iter().zip(done) {
                scope.set(&steps[*place].id, value.clone());
                results.insert(steps[*place].id.clone(), value);
                next = next.or(cursor);
            }
        }
        Ok(FetchedValue { value: Raw::of(&Value::Object(results)), next })
    }

    async fn step(
        &self,
        step: &StepRule,
        scope: &VariableScope<'_>,
        page_options: &PageOptions,
    ) -> Result<(Value, Option<String>), Error> {
        if let Some(when) = &step.when
            && !when.holds(&Value::Null, scope)?
        {
            return Ok((Value::Null, None));
        }
        let mut scope = VariableScope::within(scope);
        for (name, value) in &step.values {
            let value = value.one(&Value::Null, &scope)?;
            scope.set(name, value);
        }
        let Some(each) = &step.each else {
            let fetched = self.fetch(&step.tool_request, &scope, page_options).await?;
            return Ok((parse(&fetched.value), fetched.next));
        };
        let elements = each.each(&Value::Null, &scope)?;
        let run = elements.into_iter().map(|element| {
            let scope = VariableScope::within(&scope).with("each", element.into_owned());
            async move { self.fetch(&step.tool_request, &scope, page_options).await }
        });
        let fetched = try_join_all(run).await?;
        Ok((fetched.iter().map(|fetched| parse(&fetched.value)).collect(), None))
    }

    /// Runs one leg with its pagination and chunks. Boxed, because nested lists recurse.
    pub(crate) fn fetch<'f>(
        &'f self,
        tool_request: &'f ToolRequest,
        scope: &'f VariableScope<'f>,
        page_options: &'f PageOptions,
    ) -> BoxFuture<'f, Result<FetchedValue, Error>> {
        Box::pin(async move {
            let fetched = match (&tool_request.pager, &tool_request.chunk) {
                (Some((pager, size)), _) => self.pages(tool_request, pager, *size, scope, page_options).await?,
                (None, Some(chunk)) => self.chunks(tool_request, chunk, scope).await?,
                (None, None) => {
                    let answer = self.send(&tool_request.request.fill(scope)?, &tool_request.request).await?;
                    FetchedValue { value: answer.body, next: None }
                }
            };
            match &tool_request.result {
                None => Ok(fetched),
                Some(result) => {
                    let value = result.one(&parse(&fetched.value), scope)?;
                    Ok(FetchedValue { value: Raw::of(&value), ..fetched })
                }
            }
        })
    }

    pub(crate) fn report_progress(&self, done: u64, total: Option<u64>, message: &str) {
        let mut progress = Object::default().with("progress", Raw::of(&done)).with("message", message);
        if let Some(total) = total {
            progress.set("total", Raw::of(&total));
        }
        self.context.back.progress(progress);
    }
}

/// Returns the first choice whose condition holds.
pub(crate) fn choose<'c>(choices: &'c [RequestChoice], scope: &VariableScope<'_>) -> Result<&'c RequestChoice, Error> {
    for choice in choices {
        let holds = choice.when.as_ref().map_or(Ok(true), |when| when.holds(&Value::Null, scope))?;
        if holds {
            return Ok(choice);
        }
    }
    Err(Error::new(ErrorKind::Validation, "No request of the tool matches these arguments."))
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

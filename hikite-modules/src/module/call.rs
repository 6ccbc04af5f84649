//! One tool call: sends its requests in sequence, in parallel or page by page, and builds the result.

use std::hash::{BuildHasher, RandomState};

use futures_util::future::{BoxFuture, try_join_all};
use hikite_core::compact::parse;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::Service;
use super::account::Account;
use super::fetch::{Asked, Fetched};
use super::leg::Leg;
use super::tool::{Choice, StepRule, Tool, Work};
use crate::scope::Scope;

pub(crate) struct Call<'a> {
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
    pub(super) account: Mutex<Option<Account>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        service: &'a Service,
        context: &'a CallContext,
        writes: bool,
        site: Option<String>,
    ) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "any number between 0 and 1 will do")]
        let share = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        Self { service, context, writes, site, any_site: false, share, account: Mutex::default() }
    }

    pub(crate) async fn run(
        &self,
        tool: &Tool,
        arguments: &Scope<'_>,
        asked: &Asked,
    ) -> Result<Fetched, Error> {
        let scope = Scope::within(arguments)
            .with("call_id", Value::from(format!("{:016x}{:016x}", random(), random())));
        match &tool.work {
            Work::Compute { value, .. } => {
                let value = value.one(&Value::Null, &scope)?;
                Ok(Fetched { value: Raw::of(&value), next: None })
            }
            Work::Choose(choices) => {
                let choice = choose(choices, &scope)?;
                self.fetch(&choice.leg, &scope, asked).await
            }
            // Lists of steps are fetched completely, unless the tool itself is paginated.
            Work::Steps { steps, waves, .. } if tool.is_paged() => {
                self.steps(steps, waves, &scope, asked).await
            }
            Work::Steps { steps, waves, .. } => {
                let whole = Asked { all: true, ..Asked::default() };
                self.steps(steps, waves, &scope, &whole).await
            }
        }
    }

    async fn steps(
        &self,
        steps: &[StepRule],
        waves: &[Vec<usize>],
        scope: &Scope<'_>,
        asked: &Asked,
    ) -> Result<Fetched, Error> {
        let mut results = Map::new();
        let mut scope = Scope::within(scope);
        let mut next = None;
        for wave in waves {
            let run = wave.iter().map(|place| self.step(&steps[*place], &scope, asked));
            let done = try_join_all(run).await?;
            for (place, (value, cursor)) in wave.iter().zip(done) {
                scope.set(&steps[*place].id, value.clone());
                results.insert(steps[*place].id.clone(), value);
                next = next.or(cursor);
            }
        }
        Ok(Fetched { value: Raw::of(&Value::Object(results)), next })
    }

    async fn step(
        &self,
        step: &StepRule,
        scope: &Scope<'_>,
        asked: &Asked,
    ) -> Result<(Value, Option<String>), Error> {
        if let Some(when) = &step.when
            && !when.holds(&Value::Null, scope)?
        {
            return Ok((Value::Null, None));
        }
        let mut scope = Scope::within(scope);
        for (name, value) in &step.values {
            let value = value.one(&Value::Null, &scope)?;
            scope.set(name, value);
        }
        let Some(each) = &step.each else {
            let fetched = self.fetch(&step.leg, &scope, asked).await?;
            return Ok((parse(&fetched.value), fetched.next));
        };
        let elements = each.each(&Value::Null, &scope)?;
        let run = elements.into_iter().map(|element| {
            let scope = Scope::within(&scope).with("each", element.into_owned());
            async move { self.fetch(&step.leg, &scope, asked).await }
        });
        let fetched = try_join_all(run).await?;
        Ok((fetched.iter().map(|fetched| parse(&fetched.value)).collect(), None))
    }

    /// Runs one leg with its pagination and chunks. Boxed, because nested lists recurse.
    pub(crate) fn fetch<'f>(
        &'f self,
        leg: &'f Leg,
        scope: &'f Scope<'f>,
        asked: &'f Asked,
    ) -> BoxFuture<'f, Result<Fetched, Error>> {
        Box::pin(async move {
            let fetched = match (&leg.pager, &leg.chunk) {
                (Some((pager, size)), _) => self.pages(leg, pager, *size, scope, asked).await?,
                (None, Some(chunk)) => self.chunks(leg, chunk, scope).await?,
                (None, None) => {
                    let answer = self.send(&leg.request.fill(scope)?, &leg.request).await?;
                    Fetched { value: answer.body, next: None }
                }
            };
            match &leg.result {
                None => Ok(fetched),
                Some(result) => {
                    let value = result.one(&parse(&fetched.value), scope)?;
                    Ok(Fetched { value: Raw::of(&value), ..fetched })
                }
            }
        })
    }

    pub(crate) fn tell(&self, done: u64, total: Option<u64>, message: &str) {
        let mut progress = Object::default().with("progress", Raw::of(&done)).with("message", message);
        if let Some(total) = total {
            progress.set("total", Raw::of(&total));
        }
        self.context.back.progress(progress);
    }
}

/// Returns the first choice whose condition holds.
pub(crate) fn choose<'c>(choices: &'c [Choice], scope: &Scope<'_>) -> Result<&'c Choice, Error> {
    for choice in choices {
        let holds = choice.when.as_ref().map_or(Ok(true), |when| when.holds(&Value::Null, scope))?;
        if holds {
            return Ok(choice);
        }
    }
    Err(Error::new(Kind::Validation, "the arguments do not say what to do"))
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

//! Execution of a batch: tasks start as the schedule allows, each call on the path of a single call. The run is one
//! future; dropping it cancels everything in flight.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::FuturesUnordered;
use hikite_core::answer::Answer;
use hikite_core::compact::{Format, Shape};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw, weight};
use hikite_core::plan::{Missing, OnError, Output, Plan, Schedule, Status, Step, Task, Template};
use hikite_core::source::CallContext;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Batch;
use super::back::{ALONE, inside};
use super::board::{Board, Given};
use super::budget::{Budget, Hold, Pace};
use super::observe::{Ending, Observer};
use super::report::Ended;
use crate::aside::by_cost;
use crate::command::{CallOptions, Command, Target};
use crate::exchange::choice::with_account;
use crate::gateway::Gateway;
use crate::handle::Holder;
use crate::present::Wanted;

/// Smallest output budget of a task, however many tasks share the space.
const BUDGET_MIN: usize = 2048;

pub(super) struct Run<'a> {
    gateway: &'a Gateway,
    plan: &'a Plan,
    surface: &'static str,
    context: CallContext,
    /// `_meta` of every call.
    meta: Option<Raw>,
    holder: Holder,
    /// Concurrency limit for calls: tasks, and elements of lists.
    places: Pace,
    concurrency: usize,
    /// Bytes of one compact result.
    budget: usize,
    /// Memory budget for everything held.
    room: Budget,
    observer: &'a dyn Observer,
}

/// The result of one call.
struct Gift {
    value: Raw,
    others: Vec<Raw>,
    /// The result after the tool author's shape, if a compact output is requested.
    made: Option<Arc<Value>>,
    hold: Hold,
}

/// A finished task, and its result for other tasks.
struct Done {
    ended: Ended,
    value: Option<Raw>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        plan: &'a Plan,
        (surface, batch, context): (&'static str, Batch, CallContext),
        observer: &'a dyn Observer,
    ) -> Self {
        let mut params = batch.params;
        let holder = Holder::of(&mut params, &context);
        let limits = &gateway.limits;
        let concurrency = batch
            .concurrency
            .unwrap_or(usize::MAX)
            .min(limits.batch_concurrency)
            .clamp(1, Semaphore::MAX_PERMITS);
        let shown = plan.tasks.iter().filter(|task| task.output == Output::Compact).count().max(1);
        Self {
            gateway,
            plan,
            surface,
            context: inside(context),
            meta: params.remove("_meta"),
            holder,
            places: Pace::new(concurrency),
            concurrency,
            budget: (limits.compact_bytes / shown).max(BUDGET_MIN),
            room: Budget::new(limits.answer_bytes),
            observer,
        }
    }

    /// Runs all tasks and returns their ends in the order of the plan.
    pub(super) async fn to_the_end(&self) -> Vec<Ended> {
        self.observer.begins(self.plan);
        let mut board = Board::new(self.plan, self.room.clone());
        let mut schedule = Schedule::new(self.plan, self.concurrency);
        let mut running = FuturesUnordered::new();
        let mut handles: Vec<Option<AbortHandle>> = vec![None; self.plan.tasks.len()];
        let mut culprit: Option<Arc<str>> = None;
        loop {
            while let Some(step) = schedule.step() {
                match step {
                    Step::Run(at) => {
                        let (task, handle) = abortable(self.task(at, board.given(at)));
                        handles[at] = Some(handle);
                        running.push(Box::pin(async move { (at, task.await) }));
                    }
                    Step::Skip { task, cause } => {
                        let cause = Arc::clone(&self.plan.tasks[cause].id);
                        self.end(&mut board, task, Ended::because(Status::Skipped, cause));
                    }
                    Step::Cancel(task) => {
                        if let Some(handle) = &handles[task] {
                            handle.abort();
                        }
                        let cause = culprit.clone().unwrap_or_default();
                        self.end(&mut board, task, Ended::because(Status::Cancelled, cause));
                    }
                }
            }
            let Some((at, outcome)) = running.next().await else { return board.ended() };
            // A cancelled task was recorded as ended before its future was dropped.
            let Some(done) = outcome.ok().filter(|_| !board.has_ended(at)) else { continue };
            let cost = done.value.as_ref().map_or(0, |value| value.bytes().len());
            let ended = by_cost(cost, || kept(&mut board, at, done)).await;
            if ended.error.is_some() {
                culprit = Some(Arc::clone(&self.plan.tasks[at].id));
            }
            schedule.finish(at, ended.status);
            self.end(&mut board, at, ended);
        }
    }

    fn end(&self, board: &mut Board<'_>, at: usize, ended: Ended) {
        let (status, took) = (ended.status, ended.took);
        board.end(at, ended);
        let (task, total) = (&self.plan.tasks[at], self.plan.tasks.len());
        self.observer.ends(&Ending { at, task, status, took, done: board.done, total });
    }

    async fn task(&self, at: usize, given: Given) -> Done {
        let task = &self.plan.tasks[at];
        let mut began = Instant::now();
        let holds = task.condition.as_ref().map(|condition| given.read(None, |scope| condition.holds(scope)));
        let outcome = match (holds, &task.for_each) {
            (Some(Ok(false)), _) => {
                let ended = Ended::because(Status::Skipped, Arc::from("if"));
                return Done { ended, value: None };
            }
            (Some(Err(missing)), _) => Err(not_there(missing)),
            (_, Some(list)) => {
                self.observer.starts(at);
                Box::pin(self.elements(task, list, &given)).await
            }
            (_, None) => {
                let _place = self.places.place().await;
                began = Instant::now();
                self.observer.starts(at);
                self.call(task, &given, None).await
            }
        };
        self.done(task, outcome, began.elapsed()).await
    }

    async fn done(&self, task: &Task, outcome: Result<Gift, Error>, took: Duration) -> Done {
        let mut ended = Ended {
            status: Status::Ok,
            took,
            error: None,
            cause: None,
            output: None,
            content: Vec::new(),
            hold: None,
        };
        let shown = match outcome {
            Ok(gift) => self.shown(task, gift, &mut ended).await,
            Err(error) => Err(error),
        };
        match shown {
            Ok(value) => Done { ended, value: Some(value) },
            Err(error) => {
                let status = if error.kind == Kind::Timeout { Status::Timeout } else { Status::Error };
                Done { ended: Ended { status, error: Some(error), ..ended }, value: None }
            }
        }
    }

    /// Adds the requested output to the answer, releases the rest and returns the value for dependent tasks.
    async fn shown(&self, task: &Task, mut gift: Gift, ended: &mut Ended) -> Result<Raw, Error> {
        let output = match task.output {
            Output::None => None,
            Output::Raw => Some(gift.value.clone()),
            Output::Compact => {
                let shape = gift.made.take().map(Shape::Made);
                let (compacted, _) =
                    self.gateway.compact(&gift.value, shape.as_ref(), self.budget, &self.holder).await;
                Some(Raw::from(compacted.text))
            }
        };
        let content = if output.is_some() { gift.others } else { Vec::new() };
        gift.hold.resize(output.as_ref().map_or(0, |output| output.bytes().len()) + sum(&content))?;
        (ended.output, ended.content, ended.hold) = (output, content, Some(gift.hold));
        Ok(gift.value)
    }

    /// Makes one call per element of a list. All elements share the concurrency limit with the other tasks.
    async fn elements(&self, task: &Task, list: &Template, given: &Given) -> Result<Gift, Error> {
        let resolve = || given.read(None, |scope| list.resolve(scope));
        let items = items(by_cost(list.cost(), resolve).await, self.gateway.limits.batch_tasks)?;
        let element = async |index: usize| {
            let _place = self.places.place().await;
            (index, self.call(task, given, Some((&items[index], index))).await)
        };
        let mut gifts: Vec<Option<Gift>> = Vec::new();
        gifts.resize_with(items.len(), || None);
        let mut next = 0..items.len();
        let mut running: FuturesUnordered<_> =
            next.by_ref().take(self.concurrency).map(|index| Box::pin(element(index))).collect();
        while let Some((index, outcome)) = running.next().await {
            match outcome {
                Ok(gift) => gifts[index] = Some(gift),
                Err(_) if task.on_error == OnError::Continue => {}
                Err(error) => {
                    let message = format!("element {index}: {}", error.message);
                    return Err(Error { message: message.into(), ..error });
                }
            }
            running.extend(next.next().map(|index| Box::pin(element(index))));
        }
        self.together(gifts)
    }

    /// Merges the results of all elements into one.
    fn together(&self, gifts: Vec<Option<Gift>>) -> Result<Gift, Error> {
        let null = Raw::null();
        let value = Raw::array(gifts.iter().map(|gift| gift.as_ref().map_or(&null, |gift| &gift.value)));
        let (mut others, mut made) = (Vec::new(), Some(Vec::new()));
        let mut bytes = value.bytes().len();
        for gift in gifts {
            let Some(gift) = gift else {
                made = None;
                continue;
            };
            bytes += sum(&gift.others);
            others.extend(gift.others);
            made = made.zip(gift.made).map(|(mut all, one)| {
                all.push(Arc::unwrap_or_clone(one));
                all
            });
        }
        let made = made.filter(|all| !all.is_empty()).map(Value::Array);
        bytes += made.as_ref().map_or(0, weight);
        Ok(Gift { value, others, made: made.map(Arc::new), hold: self.room.hold(bytes)? })
    }

    async fn call(&self, task: &Task, given: &Given, item: Option<(&Value, usize)>) -> Result<Gift, Error> {
        let resolve = || given.read(item, |scope| task.params.resolve(scope)).map(Raw::from);
        let arguments = by_cost(task.params.cost(), resolve).await.map_err(not_there)?;
        let mut params = Object::default().with("name", &*task.tool.tool).with("arguments", arguments);
        if let Some(meta) = &self.meta {
            params.set("_meta", meta.clone());
        }
        let params = with_account(params, task.account.as_deref());
        let options = CallOptions { timeout: task.timeout, retry: None };
        let arguments = params.get("arguments").cloned();
        let command = Command::Call { target: Target::Keyed(task.tool.clone()), params, options };
        // Boxed, so that a waiting task stays small.
        let result = Box::pin(self.gateway.dispatch_on(self.surface, command, self.context.clone())).await;
        self.places.learn(result.as_ref().map_or(0, |result| result.bytes().len()), &self.room);
        let result = result?;
        let mut hold = self.room.hold(result.bytes().len())?;
        let Answer { value, others, .. } = by_cost(result.bytes().len(), || answer(&result)).await?;
        let made = self.made(task, arguments.as_ref(), &result).await;
        if let Some(conversation) = &self.holder.conversation {
            self.gateway.went_well(conversation, &task.tool);
        }
        let value = match &task.select {
            Some(selector) => self.gateway.select(selector, value, self.holder.caller()).await?,
            None => value,
        };
        // Copied into buffers of their own, so that the unused rest of the result is freed at once.
        let others: Vec<Raw> = if task.output == Output::None { Vec::new() } else { copied(&others) };
        let value = value.copied();
        drop(result);
        hold.resize(value.bytes().len() + sum(&others) + made.as_deref().map_or(0, weight))?;
        Ok(Gift { value, others, made, hold })
    }

    async fn made(&self, task: &Task, arguments: Option<&Raw>, result: &Raw) -> Option<Arc<Value>> {
        if task.output != Output::Compact || task.select.is_some() {
            return None;
        }
        let wanted = Wanted { format: Some(Format::Compact), select: None };
        let caller = self.holder.caller();
        match self.gateway.shape_of(Some(&task.tool), arguments, result, &wanted, caller).await? {
            Shape::Made(made) => Some(made),
            _ => None,
        }
    }
}

/// Stores the result for dependent tasks. A result that exceeds the budget turns the task into a failure.
fn kept(board: &mut Board<'_>, at: usize, Done { ended, value }: Done) -> Ended {
    match value.map_or(Ok(()), |value| board.keep(at, &value)) {
        Ok(()) => ended,
        Err(error) => Ended {
            status: Status::Error,
            error: Some(error),
            output: None,
            content: Vec::new(),
            hold: None,
            ..ended
        },
    }
}

fn copied(values: &[Raw]) -> Vec<Raw> {
    values.iter().map(Raw::copied).collect()
}

/// Returns the total size in bytes.
fn sum(values: &[Raw]) -> usize {
    values.iter().map(|value| value.bytes().len()).sum()
}

fn items(list: Result<Value, Missing>, most: usize) -> Result<Vec<Value>, Error> {
    match list.map_err(not_there)? {
        Value::Array(items) if items.len() <= most => Ok(items),
        Value::Array(items) => {
            let message = format!("`for_each` has {} elements; {most} are the most", items.len());
            Err(Error::new(Kind::Validation, message).hint("take a part of the list with `select`"))
        }
        _ => Err(Error::new(Kind::Validation, "`for_each` must be a list")
            .hint("refer to the list itself, like `${search.results}`")),
    }
}

fn not_there(missing: Missing) -> Error {
    Error::new(Kind::Validation, missing.message).hint(missing.hint)
}

/// Reads the result of a tool. Fails if the tool failed or has not finished.
fn answer(result: &Raw) -> Result<Answer, Error> {
    let unfinished = |message: &str| Err(Error::new(Kind::ToolExecution, message).hint(ALONE));
    // The substring search spares all other results the parsing.
    if memchr::memmem::find(result.bytes(), b"\"resultType\"").is_some() {
        match result.object().and_then(|members| members.text("resultType")).as_deref() {
            Some("input_required") => {
                return unfinished("the tool wants to ask something, and nobody can be asked in a batch");
            }
            Some("task") => {
                return unfinished("the tool goes on in the background, and a batch does not wait for it");
            }
            _ => {}
        }
    }
    let answer = Answer::read(result);
    if !answer.failed {
        return Ok(answer);
    }
    let words = if answer.text.is_empty() { "the tool failed and does not say why" } else { &answer.text };
    Err(Error::new(Kind::ToolExecution, words))
}

//! Execution of a batch: tasks start as the schedule allows, each call on the path of a single call. The run is one
//! future; dropping it cancels everything in flight.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::FuturesUnordered;
use hikite_core::compact::{AnswerFormat, Shape};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw, weight};
use hikite_core::plan::{
    JsonTemplate, OnError, Plan, Schedule, ScheduleStep, Task, TaskOutput, TaskStatus, UnresolvedReference,
};
use hikite_core::source::CallContext;
use hikite_core::tool_output::ToolOutput;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Batch;
use super::backchannel::{CALL_ALONE_HINT, task_context};
use super::budget::{ConcurrencyLimit, MemoryBudget, Reservation};
use super::observer::{Observer, TaskCompletion};
use super::report::TaskEnd;
use super::task_result::{TaskInputs, TaskResults};
use crate::accounts::selection::with_account;
use crate::command::{CallOptions, Command, ToolTarget};
use crate::gateway::Gateway;
use crate::handle::ResultOwner;
use crate::off_worker::off_worker;
use crate::render::OutputOptions;

/// Smallest output budget of a task, however many tasks share the space.
const BUDGET_MIN: usize = 2048;

pub(super) struct BatchRun<'a> {
    gateway: &'a Gateway,
    plan: &'a Plan,
    surface: &'static str,
    context: CallContext,
    /// `_meta` of every call.
    meta: Option<Raw>,
    holder: ResultOwner,
    /// Concurrency limit for calls: tasks, and elements of lists.
    call_limit: ConcurrencyLimit,
    concurrency: usize,
    /// Bytes of one compact result.
    budget: usize,
    /// Memory budget for everything held.
    memory: MemoryBudget,
    observer: &'a dyn Observer,
}

/// The result of one call.
struct CallOutput {
    value: Raw,
    others: Vec<Raw>,
    /// The result after the tool author's shape, if a compact output is requested.
    shaped: Option<Arc<Value>>,
    hold: Reservation,
}

/// A finished task, and its result for other tasks.
struct TaskOutcome {
    ended: TaskEnd,
    value: Option<Raw>,
}

impl<'a> BatchRun<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        plan: &'a Plan,
        (surface, batch, context): (&'static str, Batch, CallContext),
        observer: &'a dyn Observer,
    ) -> Self {
        let mut params = batch.params;
        let holder = ResultOwner::of(&mut params, &context);
        let limits = &gateway.limits;
        let concurrency =
            batch.concurrency.unwrap_or(usize::MAX).min(limits.batch_concurrency).clamp(1, Semaphore::MAX_PERMITS);
        let shown = plan.tasks.iter().filter(|task| task.output == TaskOutput::Compact).count().max(1);
        Self {
            gateway,
            plan,
            surface,
            context: task_context(context),
            meta: params.remove("_meta"),
            holder,
            call_limit: ConcurrencyLimit::new(concurrency),
            concurrency,
            budget: (limits.compact_bytes / shown).max(BUDGET_MIN),
            memory: MemoryBudget::new(limits.answer_bytes),
            observer,
        }
    }

    /// Runs all tasks and returns their ends in the order of the plan.
    pub(super) async fn run_to_end(&self) -> Vec<TaskEnd> {
        self.observer.begins(self.plan);
        let mut board = TaskResults::new(self.plan, self.memory.clone());
        let mut schedule = Schedule::new(self.plan, self.concurrency);
        let mut running = FuturesUnordered::new();
        let mut handles: Vec<Option<AbortHandle>> = vec![None; self.plan.tasks.len()];
        let mut culprit: Option<Arc<str>> = None;
        loop {
            while let Some(step) = schedule.step() {
                match step {
                    ScheduleStep::Run(at) => {
                        let (task, handle) = abortable(self.task(at, board.inputs(at)));
                        handles[at] = Some(handle);
                        running.push(Box::pin(async move { (at, task.await) }));
                    }
                    ScheduleStep::Skip { task, cause } => {
                        let cause = Arc::clone(&self.plan.tasks[cause].id);
                        self.end(&mut board, task, TaskEnd::because(TaskStatus::Skipped, cause));
                    }
                    ScheduleStep::Cancel(task) => {
                        if let Some(handle) = &handles[task] {
                            handle.abort();
                        }
                        let cause = culprit.clone().unwrap_or_default();
                        self.end(&mut board, task, TaskEnd::because(TaskStatus::Cancelled, cause));
                    }
                }
            }
            let Some((at, outcome)) = running.next().await else { return board.ended() };
            // A cancelled task was recorded as ended before its future was dropped.
            let Some(done) = outcome.ok().filter(|_| !board.has_ended(at)) else { continue };
            let cost = done.value.as_ref().map_or(0, |value| value.bytes().len());
            let ended = off_worker(cost, || store_result(&mut board, at, done)).await;
            if ended.error.is_some() {
                culprit = Some(Arc::clone(&self.plan.tasks[at].id));
            }
            schedule.finish(at, ended.status);
            self.end(&mut board, at, ended);
        }
    }

    fn end(&self, board: &mut TaskResults<'_>, at: usize, ended: TaskEnd) {
        let (status, took) = (ended.status, ended.took);
        board.end(at, ended);
        let (task, total) = (&self.plan.tasks[at], self.plan.tasks.len());
        self.observer.ends(&TaskCompletion { at, task, status, took, done: board.done, total });
    }

    async fn task(&self, at: usize, inputs: TaskInputs) -> TaskOutcome {
        let task = &self.plan.tasks[at];
        let mut began = Instant::now();
        let holds = task.condition.as_ref().map(|condition| inputs.read(None, |scope| condition.holds(scope)));
        let outcome = match (holds, &task.for_each) {
            (Some(Ok(false)), _) => {
                let ended = TaskEnd::because(TaskStatus::Skipped, Arc::from("if"));
                return TaskOutcome { ended, value: None };
            }
            (Some(Err(missing)), _) => Err(not_there(missing)),
            (_, Some(list)) => {
                self.observer.starts(at);
                Box::pin(self.elements(task, list, &inputs)).await
            }
            (_, None) => {
                let _permit = self.call_limit.acquire().await;
                began = Instant::now();
                self.observer.starts(at);
                self.call(task, &inputs, None).await
            }
        };
        self.done(task, outcome, began.elapsed()).await
    }

    async fn done(&self, task: &Task, outcome: Result<CallOutput, Error>, took: Duration) -> TaskOutcome {
        let mut ended = TaskEnd {
            status: TaskStatus::Ok,
            took,
            error: None,
            cause: None,
            output: None,
            content: Vec::new(),
            hold: None,
        };
        let shown = match outcome {
            Ok(call_output) => self.shown(task, call_output, &mut ended).await,
            Err(error) => Err(error),
        };
        match shown {
            Ok(value) => TaskOutcome { ended, value: Some(value) },
            Err(error) => {
                let status = if error.kind == ErrorKind::Timeout { TaskStatus::Timeout } else { TaskStatus::Error };
                TaskOutcome { ended: TaskEnd { status, error: Some(error), ..ended }, value: None }
            }
        }
    }

    /// Adds the requested output to the answer, releases the rest and returns the value for dependent tasks.
    async fn shown(&self, task: &Task, mut call_output: CallOutput, ended: &mut TaskEnd) -> Result<Raw, Error> {
        let output = match task.output {
            TaskOutput::None => None,
            TaskOutput::Raw => Some(call_output.value.clone()),
            TaskOutput::Compact => {
                let shape = call_output.shaped.take().map(Shape::Prepared);
                let (compacted, _) =
                    self.gateway.compact(&call_output.value, shape.as_ref(), self.budget, &self.holder).await;
                Some(Raw::from(compacted.text))
            }
        };
        let content = if output.is_some() { call_output.others } else { Vec::new() };
        call_output.hold.resize(output.as_ref().map_or(0, |output| output.bytes().len()) + sum(&content))?;
        (ended.output, ended.content, ended.hold) = (output, content, Some(call_output.hold));
        Ok(call_output.value)
    }

    /// Makes one call per element of a list. All elements share the concurrency limit with the other tasks.
    async fn elements(&self, task: &Task, list: &JsonTemplate, inputs: &TaskInputs) -> Result<CallOutput, Error> {
        let resolve = || inputs.read(None, |scope| list.resolve(scope));
        let items = items(off_worker(list.cost(), resolve).await, self.gateway.limits.batch_tasks)?;
        let element = async |index: usize| {
            let _permit = self.call_limit.acquire().await;
            (index, self.call(task, inputs, Some((&items[index], index))).await)
        };
        let mut call_outputs: Vec<Option<CallOutput>> = Vec::new();
        call_outputs.resize_with(items.len(), || None);
        let mut next = 0..items.len();
        let mut running: FuturesUnordered<_> =
            next.by_ref().take(self.concurrency).map(|index| Box::pin(element(index))).collect();
        while let Some((index, outcome)) = running.next().await {
            match outcome {
                Ok(call_output) => call_outputs[index] = Some(call_output),
                Err(_) if task.on_error == OnError::Continue => {}
                Err(error) => {
                    let message = format!("Element {index}: {}", error.message);
                    return Err(Error { message: message.into(), ..error });
                }
            }
            running.extend(next.next().map(|index| Box::pin(element(index))));
        }
        self.merge(call_outputs)
    }

    /// Merges the results of all elements into one.
    fn merge(&self, call_outputs: Vec<Option<CallOutput>>) -> Result<CallOutput, Error> {
        let null = Raw::null();
        let value = Raw::array(
            call_outputs.iter().map(|call_output| call_output.as_ref().map_or(&null, |call_output| &call_output.value)),
        );
        let (mut others, mut shaped) = (Vec::new(), Some(Vec::new()));
        let mut bytes = value.bytes().len();
        for call_output in call_outputs {
            let Some(call_output) = call_output else {
                shaped = None;
                continue;
            };
            bytes += sum(&call_output.others);
            others.extend(call_output.others);
            shaped = shaped.zip(call_output.shaped).map(|(mut all, one)| {
                all.push(Arc::unwrap_or_clone(one));
                all
            });
        }
        let shaped = shaped.filter(|all| !all.is_empty()).map(Value::Array);
        bytes += shaped.as_ref().map_or(0, weight);
        Ok(CallOutput { value, others, shaped: shaped.map(Arc::new), hold: self.memory.hold(bytes)? })
    }

    async fn call(&self, task: &Task, inputs: &TaskInputs, item: Option<(&Value, usize)>) -> Result<CallOutput, Error> {
        let resolve = || inputs.read(item, |scope| task.params.resolve(scope)).map(Raw::from);
        let arguments = off_worker(task.params.cost(), resolve).await.map_err(not_there)?;
        let mut params = Object::default().with("name", &*task.tool.tool).with("arguments", arguments);
        if let Some(meta) = &self.meta {
            params.set("_meta", meta.clone());
        }
        let params = with_account(params, task.account.as_deref());
        let options = CallOptions { timeout: task.timeout, retry: None };
        let arguments = params.get("arguments").cloned();
        let command = Command::Call { target: ToolTarget::Keyed(task.tool.clone()), params, options };
        // Boxed, so that a waiting task stays small.
        let result = Box::pin(self.gateway.dispatch_on(self.surface, command, self.context.clone())).await;
        self.call_limit.adjust(result.as_ref().map_or(0, |result| result.bytes().len()), &self.memory);
        let result = result?;
        let mut hold = self.memory.hold(result.bytes().len())?;
        let ToolOutput { value, others, .. } = off_worker(result.bytes().len(), || answer(&result)).await?;
        let shaped = self.shaped(task, arguments.as_ref(), &result).await;
        if let Some(conversation) = &self.holder.conversation {
            self.gateway.record_success(conversation, &task.tool);
        }
        let value = match &task.select {
            Some(selector) => self.gateway.select(selector, value, self.holder.caller()).await?,
            None => value,
        };
        // Copied into buffers of their own, so that the unused rest of the result is freed at once.
        let others: Vec<Raw> = if task.output == TaskOutput::None { Vec::new() } else { copied(&others) };
        let value = value.copied();
        drop(result);
        hold.resize(value.bytes().len() + sum(&others) + shaped.as_deref().map_or(0, weight))?;
        Ok(CallOutput { value, others, shaped, hold })
    }

    async fn shaped(&self, task: &Task, arguments: Option<&Raw>, result: &Raw) -> Option<Arc<Value>> {
        if task.output != TaskOutput::Compact || task.select.is_some() {
            return None;
        }
        let wanted = OutputOptions { format: Some(AnswerFormat::Compact), select: None };
        let caller = self.holder.caller();
        match self.gateway.shape_of(Some(&task.tool), arguments, result, &wanted, caller).await? {
            Shape::Prepared(shaped) => Some(shaped),
            _ => None,
        }
    }
}

/// Stores the result for dependent tasks. A result that exceeds the budget turns the task into a failure.
fn store_result(board: &mut TaskResults<'_>, at: usize, TaskOutcome { ended, value }: TaskOutcome) -> TaskEnd {
    match value.map_or(Ok(()), |value| board.store(at, &value)) {
        Ok(()) => ended,
        Err(error) => TaskEnd {
            status: TaskStatus::Error,
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

fn items(list: Result<Value, UnresolvedReference>, most: usize) -> Result<Vec<Value>, Error> {
    match list.map_err(not_there)? {
        Value::Array(items) if items.len() <= most => Ok(items),
        Value::Array(items) => {
            let message = format!("`for_each` has {} elements; the limit is {most}.", items.len());
            Err(Error::new(ErrorKind::Validation, message).hint("Select a part of the list with `select`."))
        }
        _ => Err(Error::new(ErrorKind::Validation, "`for_each` must be a list.")
            .hint("Refer to the list itself, for example `${search.results}`.")),
    }
}

fn not_there(missing: UnresolvedReference) -> Error {
    Error::new(ErrorKind::Validation, missing.message).hint(missing.hint)
}

/// Reads the result of a tool. Fails if the tool failed or has not finished.
fn answer(result: &Raw) -> Result<ToolOutput, Error> {
    let unfinished = |message: &str| Err(Error::new(ErrorKind::ToolExecution, message).hint(CALL_ALONE_HINT));
    // The substring search spares all other results the parsing.
    if memchr::memmem::find(result.bytes(), b"\"resultType\"").is_some() {
        match result.object().and_then(|members| members.text("resultType")).as_deref() {
            Some("input_required") => {
                return unfinished("The tool wants to ask the user something, which is not possible in a batch.");
            }
            Some("task") => {
                return unfinished("The tool continues in the background, and a batch does not wait for it.");
            }
            _ => {}
        }
    }
    let answer = ToolOutput::read(result);
    if !answer.failed {
        return Ok(answer);
    }
    let words = if answer.text.is_empty() { "The tool failed without an error message." } else { &answer.text };
    Err(Error::new(ErrorKind::ToolExecution, words))
}

//! Metrics: histograms of durations by outcome, and counters. Recording on the path of a call is an atomic addition;
//! every label set is bounded, and labels never contain argument values.

mod histogram;
mod metric;
mod recent;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::SourceMethod;
use memchr::memmem;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::audit::{CANCELLED, OK};
use crate::trace::Tracer;
use histogram::HistogramFamily;
pub use histogram::{BOUNDS, DurationCounts};
pub(crate) use metric::{GatewayReading, metrics};
pub use metric::{Labels, Metric, MetricData, Point};
pub(crate) use recent::RecentCalls;
use recent::RecentCounts;

/// Maximum number of label sets of MCP operations.
const OPERATIONS: usize = 256;
/// Maximum number of label sets of HTTP requests.
const HTTP_REQUESTS: usize = 512;
/// Maximum number of label sets of one module's calls.
const CALLS: usize = 64;

/// Error type of a result that has `isError` set.
pub const TOOL_ERROR: &str = "tool_error";

#[derive(Debug)]
pub struct Meter {
    tracer: Arc<OnceLock<Arc<Tracer>>>,
    operations: HistogramFamily<OperationLabels>,
    exchanges: HistogramFamily<HttpRequestLabels>,
    rate_limited: AtomicU64,
    /// Config reloads rejected because of an error.
    reloads_failed: AtomicU64,
    /// Calls and failed calls since `take_counts`.
    uncollected: [AtomicU64; 2],
    /// Consulted when the catalog is built; on the path of a call the gate holds the module's own meter.
    modules: RwLock<HashMap<Arc<str>, Arc<ModuleMeter>>>,
}

/// Labels of an MCP operation.
#[derive(Debug, PartialEq)]
struct OperationLabels {
    method: &'static str,
    transport: &'static str,
    error: Option<&'static str>,
}

/// Labels of an HTTP request.
#[derive(Debug, PartialEq)]
struct HttpRequestLabels {
    method: &'static str,
    route: Box<str>,
    status: u16,
}

/// Counters of one module.
#[derive(Debug)]
pub struct ModuleMeter {
    tracer: Arc<OnceLock<Arc<Tracer>>>,
    /// Complete calls, from authorization to result.
    calls: HistogramFamily<(SourceMethod, &'static str)>,
    /// Single requests to the source.
    requests: HistogramFamily<(SourceMethod, Option<&'static str>)>,
    /// Complete calls of the recent past, in finer buckets.
    pub(crate) recent: RecentCounts,
    in_flight: AtomicUsize,
    cache_hits: AtomicU64,
    retries: AtomicU64,
    rate_limited: AtomicU64,
    /// Bytes of compacted results: before and after.
    presented: [AtomicU64; 2],
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            tracer: Arc::default(),
            operations: HistogramFamily::new(OPERATIONS),
            exchanges: HistogramFamily::new(HTTP_REQUESTS),
            rate_limited: AtomicU64::new(0),
            reloads_failed: AtomicU64::new(0),
            uncollected: Default::default(),
            modules: RwLock::default(),
        }
    }
}

impl Meter {
    /// Sets the tracer. Call once, before the first request.
    pub fn trace(&self, tracer: Arc<Tracer>) {
        let _ = self.tracer.set(tracer);
    }

    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.get()
    }

    pub(crate) fn reload_failed(&self) {
        self.reloads_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a finished MCP request. `method` and `error` come from bounded sets.
    pub fn operation(
        &self,
        method: &'static str,
        transport: &'static str,
        error: Option<&'static str>,
        elapsed: Duration,
    ) {
        let is =
            |known: &OperationLabels| known.method == method && known.error == error && known.transport == transport;
        self.operations.record(elapsed, is, || OperationLabels { method, transport, error });
    }

    /// Records an HTTP request whose response head was sent. `route` is the pattern, not the path.
    pub fn exchange(&self, method: &'static str, route: &str, status: u16, elapsed: Duration) {
        let is = |known: &HttpRequestLabels| known.status == status && known.method == method && &*known.route == route;
        self.exchanges.record(elapsed, is, || HttpRequestLabels { method, route: route.into(), status });
    }

    /// Counts a request rejected by a caller's rate limit.
    pub fn rate_limited(&self) {
        self.rate_limited.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters of a module, creating them on first use.
    pub fn module(&self, name: &Arc<str>) -> Arc<ModuleMeter> {
        if let Some(known) = self.modules.read().get(name) {
            return Arc::clone(known);
        }
        let new = || Arc::new(ModuleMeter::new(Arc::clone(&self.tracer)));
        Arc::clone(self.modules.write().entry(Arc::clone(name)).or_insert_with(new))
    }

    /// Stores a sample of every module's counters, from which recent rates are computed.
    pub fn sample_meters(&self, now: Instant) {
        for module in self.modules.read().values() {
            module.recent.keep(now);
        }
    }

    /// Returns the calls and failed calls since the previous `take_counts`.
    pub(crate) fn take_counts(&self) -> (u64, u64) {
        self.count(self.modules.read().values());
        (self.uncollected[0].swap(0, Ordering::Relaxed), self.uncollected[1].swap(0, Ordering::Relaxed))
    }

    /// Returns counts that could not be persisted, for the next `take_counts`.
    pub(crate) fn restore_counts(&self, calls: u64, errors: u64) {
        self.uncollected[0].fetch_add(calls, Ordering::Relaxed);
        self.uncollected[1].fetch_add(errors, Ordering::Relaxed);
    }

    fn count<'a>(&self, modules: impl Iterator<Item = &'a Arc<ModuleMeter>>) {
        for module in modules {
            let (calls, errors) = module.recent.take_new_counts();
            self.restore_counts(calls, errors);
        }
    }

    /// Drops the meters of removed modules.
    pub(crate) fn keep(&self, is_there: impl Fn(&Arc<str>) -> bool) {
        let mut modules = self.modules.write();
        self.count(modules.iter().filter(|(name, _)| !is_there(name)).map(|(_, module)| module));
        modules.retain(|name, _| is_there(name));
    }
}

impl ModuleMeter {
    fn new(tracer: Arc<OnceLock<Arc<Tracer>>>) -> Self {
        Self {
            tracer,
            calls: HistogramFamily::new(CALLS),
            requests: HistogramFamily::new(CALLS),
            recent: RecentCounts::default(),
            in_flight: AtomicUsize::new(0),
            cache_hits: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            rate_limited: AtomicU64::new(0),
            presented: Default::default(),
        }
    }

    pub fn cache_hit(&self) {
        self.cache_hits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub fn rate_limited(&self) {
        self.rate_limited.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a result that was compacted.
    pub(crate) fn presented(&self, before: usize, after: usize) {
        for (total, bytes) in self.presented.iter().zip([before, after]) {
            total.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    pub(crate) fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.get()
    }

    pub(crate) fn begin_call(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_call(&self, method: SourceMethod, outcome: &'static str, elapsed: Duration) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let key = (method, outcome);
        self.calls.record(elapsed, |known| *known == key, || key);
        self.recent.record(elapsed, !matches!(outcome, OK | CANCELLED));
    }

    pub(crate) fn request(&self, method: SourceMethod, error: Option<&'static str>, elapsed: Duration) {
        let key = (method, error);
        self.requests.record(elapsed, |known| *known == key, || key);
    }
}

/// Returns the error type of an outcome: the error's code, or `tool_error` for a result with `isError`.
pub fn error_type(outcome: &Result<Raw, Error>) -> Option<&'static str> {
    match outcome {
        Ok(result) => is_error_result(result).then_some(TOOL_ERROR),
        Err(error) => Some(error.code()),
    }
}

/// Returns `true` if a result has `isError: true`.
pub fn is_error_result(result: &Raw) -> bool {
    // The substring search spares nearly every result the parse.
    may_be_error(result.bytes())
        && result.object().is_some_and(|result| result.get("isError").is_some_and(|flag| flag.as_str() == "true"))
}

/// Returns `true` if the bytes contain `"isError"` followed by anything but `false`.
fn may_be_error(bytes: &[u8]) -> bool {
    static NAME: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(b"\"isError\""));
    NAME.find_iter(bytes).any(|at| {
        let behind = bytes[at + NAME.needle().len()..].trim_ascii_start();
        let value = behind.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        !value.is_some_and(|value| value.starts_with(b"false"))
    })
}

//! What is counted while requests pass: durations by outcome, and a few totals. Everything on the path of a call is
//! an addition to an atomic number; every set of labels is bounded; values of arguments are never among them.

mod histogram;
mod reading;
mod recent;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::Method;
use memchr::memmem;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::audit::{CANCELLED, OK};
use crate::trace::Tracer;
use histogram::Family;
pub use histogram::{BOUNDS, Durations};
pub use reading::{Data, Labels, Metric, Point};
pub(crate) use recent::Calls;
use recent::Recent;

/// Kinds of requests of clients that are told apart.
const OPERATIONS: usize = 256;
/// Kinds of HTTP exchanges with clients that are told apart.
const EXCHANGES: usize = 512;
/// Kinds of calls of one module that are told apart.
const CALLS: usize = 64;

/// A tool that says of its own accord that it failed.
pub const TOOL_ERROR: &str = "tool_error";

#[derive(Debug)]
pub struct Meter {
    tracer: Arc<OnceLock<Arc<Tracer>>>,
    operations: Family<Operation>,
    exchanges: Family<Exchange>,
    rate_limited: AtomicU64,
    /// Changed configs that were wrong.
    reloads_failed: AtomicU64,
    /// Calls and failed calls that were not asked for yet.
    counted: [AtomicU64; 2],
    /// Looked up when the catalog is built; on the path of a call its gate has the module's own.
    modules: RwLock<HashMap<Arc<str>, Arc<ModuleMeter>>>,
}

/// One kind of request of an MCP client.
#[derive(Debug, PartialEq)]
struct Operation {
    method: &'static str,
    transport: &'static str,
    error: Option<&'static str>,
}

/// One kind of HTTP exchange with a client.
#[derive(Debug, PartialEq)]
struct Exchange {
    method: &'static str,
    route: Box<str>,
    status: u16,
}

/// What is counted of one module.
#[derive(Debug)]
pub struct ModuleMeter {
    tracer: Arc<OnceLock<Arc<Tracer>>>,
    /// Whole calls, from the decision to the answer.
    calls: Family<(Method, &'static str)>,
    /// Single requests to the source.
    requests: Family<(Method, Option<&'static str>)>,
    /// The same once more, in finer steps: how it has been doing lately.
    pub(crate) recent: Recent,
    in_flight: AtomicUsize,
    cache_hits: AtomicU64,
    retries: AtomicU64,
    rate_limited: AtomicU64,
    /// Bytes of results that were asked for in another form: as they came, and as they went out.
    presented: [AtomicU64; 2],
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            tracer: Arc::default(),
            operations: Family::new(OPERATIONS),
            exchanges: Family::new(EXCHANGES),
            rate_limited: AtomicU64::new(0),
            reloads_failed: AtomicU64::new(0),
            counted: Default::default(),
            modules: RwLock::default(),
        }
    }
}

impl Meter {
    /// From now on spans are made; once, before the first request.
    pub fn trace(&self, tracer: Arc<Tracer>) {
        let _ = self.tracer.set(tracer);
    }

    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.get()
    }

    /// A changed config was wrong.
    pub(crate) fn reload_failed(&self) {
        self.reloads_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// One request of an MCP client is over. `method` and `error` are words of bounded sets.
    pub fn operation(
        &self,
        method: &'static str,
        transport: &'static str,
        error: Option<&'static str>,
        elapsed: Duration,
    ) {
        let is = |known: &Operation| {
            known.method == method && known.error == error && known.transport == transport
        };
        self.operations.record(elapsed, is, || Operation { method, transport, error });
    }

    /// One HTTP exchange is over, as far as its head goes. `route` is the pattern, not the path.
    pub fn exchange(&self, method: &'static str, route: &str, status: u16, elapsed: Duration) {
        let is =
            |known: &Exchange| known.status == status && known.method == method && &*known.route == route;
        self.exchanges.record(elapsed, is, || Exchange { method, route: route.into(), status });
    }

    /// A caller was over the rate of requests that is granted.
    pub fn rate_limited(&self) {
        self.rate_limited.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters of a module; the same ones as long as it is there.
    pub fn module(&self, name: &Arc<str>) -> Arc<ModuleMeter> {
        if let Some(known) = self.modules.read().get(name) {
            return Arc::clone(known);
        }
        let new = || Arc::new(ModuleMeter::new(Arc::clone(&self.tracer)));
        Arc::clone(self.modules.write().entry(Arc::clone(name)).or_insert_with(new))
    }

    /// Keeps a reading of every module, by which it is told how they have been doing lately.
    pub(crate) fn take_stock(&self, now: Instant) {
        for module in self.modules.read().values() {
            module.recent.keep(now);
        }
    }

    /// Calls and failed calls since the last time this was asked.
    pub(crate) fn take_counted(&self) -> (u64, u64) {
        self.count(self.modules.read().values());
        (self.counted[0].swap(0, Ordering::Relaxed), self.counted[1].swap(0, Ordering::Relaxed))
    }

    /// They could not be written down.
    pub(crate) fn give_back(&self, calls: u64, errors: u64) {
        self.counted[0].fetch_add(calls, Ordering::Relaxed);
        self.counted[1].fetch_add(errors, Ordering::Relaxed);
    }

    fn count<'a>(&self, modules: impl Iterator<Item = &'a Arc<ModuleMeter>>) {
        for module in modules {
            let (calls, errors) = module.recent.take_news();
            self.give_back(calls, errors);
        }
    }

    /// Forgets modules that are gone.
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
            calls: Family::new(CALLS),
            requests: Family::new(CALLS),
            recent: Recent::default(),
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

    /// A result went out in another form than it came in.
    pub(crate) fn presented(&self, before: usize, after: usize) {
        for (total, bytes) in self.presented.iter().zip([before, after]) {
            total.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    pub(crate) fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.get()
    }

    pub(crate) fn call_begins(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn call_ends(&self, method: Method, outcome: &'static str, elapsed: Duration) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let key = (method, outcome);
        self.calls.record(elapsed, |known| *known == key, || key);
        self.recent.record(elapsed, !matches!(outcome, OK | CANCELLED));
    }

    pub(crate) fn request(&self, method: Method, error: Option<&'static str>, elapsed: Duration) {
        let key = (method, error);
        self.requests.record(elapsed, |known| *known == key, || key);
    }
}

/// In one word why an outcome is no success: the code of the error, or that the tool says so itself.
pub fn error_type(outcome: &Result<Raw, Error>) -> Option<&'static str> {
    match outcome {
        Ok(result) => says_error(result).then_some(TOOL_ERROR),
        Err(error) => Some(error.code()),
    }
}

/// Whether a result says `isError`.
pub fn says_error(result: &Raw) -> bool {
    // The quick look spares nearly every result the closer one.
    may_say_error(result.bytes())
        && result
            .object()
            .is_some_and(|result| result.get("isError").is_some_and(|flag| flag.as_str() == "true"))
}

/// Whether the name stands anywhere with something else behind it than `false`.
fn may_say_error(bytes: &[u8]) -> bool {
    static NAME: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(b"\"isError\""));
    NAME.find_iter(bytes).any(|at| {
        let behind = bytes[at + NAME.needle().len()..].trim_ascii_start();
        let value = behind.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        !value.is_some_and(|value| value.starts_with(b"false"))
    })
}

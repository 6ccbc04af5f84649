//! All metrics at one moment, in a form that every exporter is built on. Names and units follow the OpenTelemetry
//! conventions where these define any.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use hikite_core::breaker;
use hikite_core::source::SourceState;
use tokio::time::Instant;

use super::{DurationCounts, Meter, ModuleMeter};
use crate::audit::AuditCounts;
use crate::gateway::Gateway;
use crate::share::SlotUsage;

/// A metric with all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    /// UCUM unit: `s`, `By`, or an annotation such as `{call}`.
    pub unit: &'static str,
    pub help: &'static str,
    pub data: MetricData,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MetricData {
    /// A total that only grows while the process runs.
    Counter(Vec<Point>),
    Gauge(Vec<Point>),
    Histogram(Vec<(Labels, DurationCounts)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub labels: Labels,
    pub value: f64,
}

pub type Labels = Vec<(&'static str, Cow<'static, str>)>;

impl Metric {
    pub fn counter(name: &'static str, unit: &'static str, help: &'static str, points: Vec<Point>) -> Self {
        Self { name, unit, help, data: MetricData::Counter(points) }
    }

    pub fn gauge(name: &'static str, unit: &'static str, help: &'static str, points: Vec<Point>) -> Self {
        Self { name, unit, help, data: MetricData::Gauge(points) }
    }

    fn histogram(name: &'static str, help: &'static str, series: Vec<(Labels, DurationCounts)>) -> Self {
        Self { name, unit: "s", help, data: MetricData::Histogram(series) }
    }
}

impl Point {
    /// Returns the point of a metric without labels.
    pub fn single(value: f64) -> Vec<Self> {
        vec![Self { labels: Vec::new(), value }]
    }
}

/// A module's counters and states at the time of reading.
struct ModuleReading<'a> {
    name: &'a str,
    meter: &'a ModuleMeter,
    waiting: usize,
    state: SourceState,
    breaker: breaker::CircuitState,
}

impl Gateway {
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Stores a sample of every module's counters; called every few seconds, off the path of calls.
    pub fn sample_meters(&self) {
        self.meter.sample_meters(Instant::now());
    }

    /// Returns the usage of shared limits, by holder.
    pub fn usages(&self) -> Vec<SlotUsage> {
        let clients = self.people.identity().and_then(|identity| identity.client_usage());
        [self.batches.usage(), self.jq.usage()].into_iter().chain(clients).collect()
    }

    /// Returns all metrics of the gateway.
    pub fn reading(&self) -> Vec<Metric> {
        let snapshot = self.snapshot();
        let read = |module| {
            let gate = snapshot.gate(module);
            ModuleReading {
                name: &module.name,
                meter: &gate.meter,
                waiting: gate.waiting(),
                state: module.source.state(),
                breaker: gate.health.state(),
            }
        };
        let modules: Vec<ModuleReading<'_>> = snapshot.catalog.modules.iter().map(read).collect();
        let mut metrics = self.meter.durations();
        metrics.extend(durations(&modules));
        metrics.extend(totals(&modules));
        metrics.push(answers(&modules));
        metrics.extend(states(&modules));
        metrics.push(Metric::counter(
            "hikite.caller.rate_limited",
            "{request}",
            "Requests rejected because the caller exceeded its rate limit.",
            Point::single(float(self.meter.rate_limited.load(Ordering::Relaxed))),
        ));
        metrics.push(Metric::counter(
            "hikite.config.reloads_failed",
            "{reload}",
            "Config reloads that failed because the file is invalid; the previous config stays active.",
            Point::single(float(self.meter.reloads_failed.load(Ordering::Relaxed))),
        ));
        metrics.extend(self.freshness.metrics());
        metrics.extend(self.views());
        metrics.extend(audit(self.auditor.counts()));
        metrics.push(Metric::counter(
            "hikite.trace.dropped",
            "{span}",
            "Spans that were not exported.",
            Point::single(float(self.meter.tracer().map_or(0, |tracer| tracer.dropped()))),
        ));
        metrics
    }
}

impl Gateway {
    fn views(&self) -> [Metric; 2] {
        let (views, built) = self.view_counts();
        [
            Metric::gauge(
                "hikite.views",
                "{view}",
                "Catalog views held in memory for callers with restricted access.",
                Point::single(count(views)),
            ),
            Metric::counter(
                "hikite.views.built",
                "{view}",
                "Catalog views that were built.",
                Point::single(float(built)),
            ),
        ]
    }
}

impl Meter {
    fn durations(&self) -> Vec<Metric> {
        let operations = self.operations.read().map(|(key, durations)| {
            let mut labels: Labels =
                vec![("mcp.method.name", key.method.into()), ("network.transport", key.transport.into())];
            labels.extend(key.error.map(|error| ("error.type", error.into())));
            (labels, durations)
        });
        let http_requests = self.exchanges.read().map(|(key, durations)| {
            let labels: Labels = vec![
                ("http.request.method", key.method.into()),
                ("http.route", key.route.to_string().into()),
                ("http.response.status_code", key.status.to_string().into()),
            ];
            (labels, durations)
        });
        vec![
            Metric::histogram(
                "mcp.server.operation.duration",
                "MCP requests, from arrival to response.",
                operations.collect(),
            ),
            Metric::histogram(
                "http.server.request.duration",
                "HTTP requests, from request head to response head.",
                http_requests.collect(),
            ),
        ]
    }
}

fn durations(modules: &[ModuleReading<'_>]) -> [Metric; 2] {
    let requests = modules.iter().flat_map(|module| {
        module.meter.requests.read().map(|((method, error), durations)| {
            let mut labels = of(module.name);
            labels.push(("mcp.method.name", method.name().into()));
            labels.extend(error.map(|error| ("error.type", error.into())));
            (labels, durations)
        })
    });
    let calls = modules.iter().flat_map(|module| {
        module.meter.calls.read().map(|((method, outcome), durations)| {
            let mut labels = of(module.name);
            labels.push(("mcp.method.name", method.name().into()));
            labels.push(("outcome", (*outcome).into()));
            (labels, durations)
        })
    });
    [
        Metric::histogram(
            "mcp.client.operation.duration",
            "Requests to upstream sources, each attempt counted separately.",
            requests.collect(),
        ),
        Metric::histogram(
            "hikite.call.duration",
            "Module calls with queueing and all attempts, as recorded in the audit log.",
            calls.collect(),
        ),
    ]
}

fn totals(modules: &[ModuleReading<'_>]) -> [Metric; 5] {
    let each = |value: fn(&ModuleReading<'_>) -> f64| -> Vec<Point> {
        modules.iter().map(|module| Point { labels: of(module.name), value: value(module) }).collect()
    };
    [
        Metric::gauge(
            "hikite.calls.in_flight",
            "{call}",
            "Calls in progress, including queued ones.",
            each(|module| count(module.meter.in_flight.load(Ordering::Relaxed))),
        ),
        Metric::gauge(
            "hikite.calls.waiting",
            "{call}",
            "Calls waiting in the queue.",
            each(|module| count(module.waiting)),
        ),
        Metric::counter(
            "hikite.cache.hits",
            "{call}",
            "Results served from the cache.",
            each(|module| float(module.meter.cache_hits.load(Ordering::Relaxed))),
        ),
        Metric::counter(
            "hikite.retries",
            "{attempt}",
            "Retries after a failure.",
            each(|module| float(module.meter.retries.load(Ordering::Relaxed))),
        ),
        Metric::counter(
            "hikite.rate_limited",
            "{call}",
            "Calls rejected because the module exceeded its rate limit.",
            each(|module| float(module.meter.rate_limited.load(Ordering::Relaxed))),
        ),
    ]
}

/// Builds the metric of bytes before and after compaction, two series per module.
fn answers(modules: &[ModuleReading<'_>]) -> Metric {
    let points = modules.iter().flat_map(|module| {
        let stages = ["before", "after"].into_iter().zip(&module.meter.presented);
        stages.map(|(stage, bytes)| {
            let mut labels = of(module.name);
            labels.push(("stage", stage.into()));
            Point { labels, value: float(bytes.load(Ordering::Relaxed)) }
        })
    });
    Metric::counter(
        "hikite.answer",
        "By",
        "Results converted to another format: size before and after.",
        points.collect(),
    )
}

/// Builds state metrics with one series per state, of which one is 1.
fn states(modules: &[ModuleReading<'_>]) -> [Metric; 2] {
    const WORDS: [&str; 5] = ["idle", "starting", "running", "needs login", "failing"];
    let point = |module: &ModuleReading<'_>, word: &'static str, is: bool| {
        let mut labels = of(module.name);
        labels.push(("state", word.into()));
        Point { labels, value: f64::from(u8::from(is)) }
    };
    let upstream = modules.iter().flat_map(|module| WORDS.map(|word| point(module, word, module.state.word() == word)));
    let breaker = modules.iter().flat_map(|module| {
        breaker::CircuitState::ALL.map(|state| point(module, state.word(), state == module.breaker))
    });
    [
        Metric::gauge("hikite.upstream.state", "1", "Current state of a module's source.", upstream.collect()),
        Metric::gauge("hikite.breaker.state", "1", "Current state of a module's circuit breaker.", breaker.collect()),
    ]
}

fn audit(counts: AuditCounts) -> [Metric; 5] {
    [
        Metric::gauge(
            "hikite.audit.waiting",
            "{record}",
            "Audit records not yet on disk.",
            Point::single(count(counts.waiting)),
        ),
        Metric::counter(
            "hikite.audit.written",
            "{record}",
            "Audit records written.",
            Point::single(float(counts.written)),
        ),
        Metric::counter(
            "hikite.audit.dropped",
            "{record}",
            "Audit records rejected because the queue is full.",
            Point::single(float(counts.dropped)),
        ),
        Metric::counter(
            "hikite.audit.trimmed",
            "{record}",
            "Audit records deleted by this process because of age or number.",
            Point::single(float(counts.trimmed)),
        ),
        Metric::gauge(
            "hikite.audit.trim_paused",
            "1",
            "1 if deletion by age is paused because this machine's clock jumped, otherwise 0.",
            Point::single(if counts.paused.is_some() { 1.0 } else { 0.0 }),
        ),
    ]
}

fn of(module: &str) -> Labels {
    vec![("module", module.to_owned().into())]
}

#[expect(clippy::cast_precision_loss, reason = "a count over 2^53 is beyond reach")]
fn float(count: u64) -> f64 {
    count as f64
}

fn count(count: usize) -> f64 {
    float(u64::try_from(count).unwrap_or(u64::MAX))
}

//! Tracing spans of calls. Without a tracer there are none and they cost nothing; with one, finished spans go into a
//! bounded queue, and are dropped and counted when it is full.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use hikite_core::source::CallOrigin;
use hikite_core::trace::TraceContext;
use tokio::sync::mpsc;

/// Creates spans and queues the sampled ones for export.
#[derive(Debug)]
pub struct Tracer {
    sampler: Sampler,
    queue: mpsc::Sender<SpanRecord>,
    dropped: AtomicU64,
}

/// Sampling policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Fraction of traces that are recorded, from zero to one.
    pub ratio: f64,
    /// Follows the sampling decision of the parent span.
    pub parent_based: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Server,
    Client,
    /// A step inside hikite.
    Internal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

/// A finished span.
#[derive(Clone, Debug)]
pub struct SpanRecord {
    pub context: TraceContext,
    pub parent: Option<u64>,
    /// The parent span belongs to another process.
    pub is_remote: bool,
    pub name: String,
    pub kind: SpanKind,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    pub failed: bool,
    /// Another trace that led to this one.
    pub link: Option<TraceContext>,
}

/// A running span; it ends on drop.
#[derive(Debug)]
pub struct TraceSpan {
    tracer: Arc<Tracer>,
    record: SpanRecord,
    /// Minimum duration; shorter spans are not recorded.
    at_least: Duration,
}

/// A span for a step inside hikite, recorded only if it took long enough. Ends on drop.
#[derive(Debug)]
pub(crate) struct TraceStep {
    span: Option<Box<TraceSpan>>,
}

/// Minimum duration of recorded steps; shorter ones only bloat traces.
const STEP_MIN: Duration = Duration::from_millis(1);

impl TraceStep {
    pub(crate) fn begin(tracer: Option<&Arc<Tracer>>, name: &'static str, origin: &CallOrigin) -> Self {
        let span = tracer.and_then(|tracer| {
            let mut span = tracer.begin(SpanKind::Internal, || name.to_owned(), context_of(origin))?;
            span.at_least = STEP_MIN;
            Some(span)
        });
        Self { span }
    }

    /// Marks the step as failed with an error type of a bounded set.
    pub(crate) fn fail(&mut self, what: &'static str) {
        if let Some(span) = &mut self.span {
            span.fail(what);
        }
    }
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl Sampler {
    fn records(self, trace: u128, parent: Option<&TraceContext>) -> bool {
        if let Some(parent) = parent.filter(|_| self.parent_based) {
            return parent.sampled;
        }
        // Same rule as in other OpenTelemetry implementations, so that all decide alike: the lower half of the id as
        // a fraction.
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
        let half = (trace as u64) >> 1;
        #[expect(clippy::cast_precision_loss, reason = "a decision of chance needs no exactness")]
        let fraction = half as f64 / (1_u64 << 63) as f64;
        self.ratio >= 1.0 || fraction < self.ratio
    }
}

impl Tracer {
    pub fn new(sampler: Sampler, queue: mpsc::Sender<SpanRecord>) -> Self {
        Self { sampler, queue, dropped: AtomicU64::new(0) }
    }

    /// Returns the number of spans lost because the queue was full or the collector rejected them.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub fn note_dropped(&self, spans: usize) {
        self.dropped.fetch_add(u64::try_from(spans).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Starts a span below `parent`, or a new trace. Returns `None` if the system has no random numbers.
    pub fn begin(
        self: &Arc<Self>,
        kind: SpanKind,
        name: impl FnOnce() -> String,
        parent: Option<TraceContext>,
    ) -> Option<Box<TraceSpan>> {
        let mut random = [0_u8; 24];
        getrandom::fill(&mut random).ok()?;
        let (trace, span) = random.split_at(16);
        let (trace, span) = (u128::from_be_bytes(trace.try_into().ok()?), u64::from_be_bytes(span.try_into().ok()?));
        let trace = parent.as_ref().map_or(trace, |parent| parent.trace);
        let sampled = self.sampler.records(trace, parent.as_ref());
        let (span, state) = (span.max(1), parent.as_ref().and_then(|parent| parent.state.clone()));
        let start = now();
        let record = SpanRecord {
            context: TraceContext { trace: trace.max(1), span, sampled, state },
            parent: parent.map(|parent| parent.span),
            is_remote: kind == SpanKind::Server,
            name: if sampled { name() } else { String::new() },
            kind,
            start,
            end: start,
            attributes: Vec::new(),
            failed: false,
            link: None,
        };
        Some(Box::new(TraceSpan { tracer: Arc::clone(self), record, at_least: Duration::ZERO }))
    }
}

impl TraceSpan {
    pub fn context(&self) -> &TraceContext {
        &self.record.context
    }

    pub fn rename(&mut self, name: String) {
        self.record.name = name;
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        if self.record.context.sampled {
            self.record.attributes.push((name, value.into()));
        }
    }

    /// Sets an attribute that is expensive to compute, only if the span is sampled.
    pub fn set_with<V: Into<AttributeValue>>(&mut self, name: &'static str, value: impl FnOnce() -> Option<V>) {
        if self.record.context.sampled
            && let Some(value) = value()
        {
            self.set(name, value);
        }
    }

    /// Marks the span as failed with an error type of a bounded set.
    pub fn fail(&mut self, what: &'static str) {
        self.record.failed = true;
        self.set("error.type", what);
    }

    pub fn link(&mut self, to: Option<TraceContext>) {
        self.record.link = to;
    }

    /// Returns the origin for requests made within this span.
    pub fn origin(&self, of: &CallOrigin) -> CallOrigin {
        CallOrigin {
            request_id: of.request_id.clone(),
            traceparent: Some(self.record.context.to_string().into()),
            tracestate: self.record.context.state.clone(),
            client: of.client.clone(),
        }
    }
}

impl Drop for TraceSpan {
    fn drop(&mut self) {
        if !self.record.context.sampled {
            return;
        }
        self.record.end = now().max(self.record.start);
        if self.record.end.duration_since(self.record.start).unwrap_or_default() < self.at_least {
            return;
        }
        let (name, attributes) = (std::mem::take(&mut self.record.name), std::mem::take(&mut self.record.attributes));
        if self.tracer.queue.try_send(SpanRecord { name, attributes, ..self.record.clone() }).is_err() {
            self.tracer.note_dropped(1);
        }
    }
}

/// Returns the trace context of an origin.
pub fn context_of(origin: &CallOrigin) -> Option<TraceContext> {
    let context = TraceContext::parse(origin.traceparent.as_deref()?)?;
    Some(TraceContext { state: origin.tracestate.clone(), ..context })
}

#[expect(clippy::disallowed_methods, reason = "spans are told in wall-clock time")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracer(sampler: Sampler, room: usize) -> (Arc<Tracer>, mpsc::Receiver<SpanRecord>) {
        let (queue, spans) = mpsc::channel(room);
        (Arc::new(Tracer::new(sampler, queue)), spans)
    }

    const ALL: Sampler = Sampler { ratio: 1.0, parent_based: true };

    #[test]
    fn a_span_goes_on_with_the_trace_of_its_parent() {
        let (tracer, mut spans) = tracer(ALL, 8);
        let parent = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let parent = parent.expect("good").with_state(Some("a=1"));
        let outer = tracer.begin(SpanKind::Server, || "outer".into(), Some(parent.clone())).expect("a span");
        let origin = outer.origin(&CallOrigin { request_id: Some("r".into()), ..CallOrigin::default() });
        let inner = tracer.begin(SpanKind::Client, || "inner".into(), context_of(&origin)).expect("a span");
        drop(inner);
        drop(outer);
        let (inner, outer) = (spans.try_recv().expect("a span"), spans.try_recv().expect("a span"));
        assert_eq!((inner.context.trace, outer.context.trace), (parent.trace, parent.trace));
        assert_eq!((outer.parent, inner.parent), (Some(parent.span), Some(outer.context.span)));
        assert_eq!(inner.context.state.as_deref(), Some("a=1"));
        assert_eq!(origin.request_id.as_deref(), Some("r"));
    }

    #[test]
    fn what_is_not_sampled_is_told_on_but_not_recorded() {
        let (tracer, mut spans) = tracer(ALL, 8);
        let parent = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
        let span = tracer.begin(SpanKind::Server, || unreachable!("no name is made"), parent).expect("a span");
        assert!(span.context().to_string().ends_with("-00"));
        drop(span);
        assert!(spans.try_recv().is_err());
        assert_eq!(tracer.dropped(), 0);
    }

    #[test]
    fn a_step_is_told_if_it_took_long_enough_to_matter() {
        let (tracer, mut spans) = tracer(ALL, 8);
        let parent = tracer.begin(SpanKind::Server, || "outer".into(), None).expect("a span");
        let origin = parent.origin(&CallOrigin::default());
        drop(TraceStep::begin(None, "without a tracer", &origin));
        let mut step = TraceStep::begin(Some(&tracer), "queue", &origin);
        let span = step.span.as_mut().expect("a span");
        assert_eq!(span.at_least, STEP_MIN);
        span.at_least = Duration::ZERO;
        drop(step);
        let told = spans.try_recv().expect("a span");
        assert_eq!((told.name.as_str(), told.kind), ("queue", SpanKind::Internal));
        assert_eq!(told.parent, Some(parent.context().span));
        let mut quick = TraceStep::begin(Some(&tracer), "quick", &origin);
        quick.span.as_mut().expect("a span").at_least = Duration::MAX;
        drop(quick);
        assert!(spans.try_recv().is_err());
    }

    #[test]
    fn the_ratio_decides_by_the_id_alone() {
        let sampler = |ratio| Sampler { ratio, parent_based: false };
        assert!(!sampler(0.0).records(0, None) && sampler(1.0).records(u128::MAX, None));
        let recorded = (0..1000_u128).filter(|n| sampler(0.25).records(n * 0x0041_8937_4bc6_a7ef, None)).count();
        assert!((200..300).contains(&recorded), "{recorded}");
    }

    #[test]
    fn spans_that_nobody_takes_are_dropped_and_counted() {
        let (tracer, _spans) = tracer(ALL, 1);
        for _ in 0..3 {
            drop(tracer.begin(SpanKind::Client, || "x".into(), None));
        }
        assert_eq!(tracer.dropped(), 2);
    }
}

//! All limits with their defaults: the `limits` section of the config. Zero means unlimited where a comment says so.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a request body, and of a line on stdin.
    pub body_bytes: usize,
    /// Maximum size of a response from an upstream, whatever the transport.
    pub answer_bytes: usize,
    /// Deprecated: maximum line length from a stdio upstream, if it differs from `answer_bytes`.
    pub line_bytes: Option<usize>,
    /// Open client connections.
    pub connections: usize,
    /// Percentage of connections, sessions, streams, suspended calls, batches, jq programs and unused clients that one
    /// caller may use, or one address before authentication. 100 disables the share.
    pub caller_share: usize,
    /// Wrong tokens per minute from one address before the login throttle rejects further ones; zero disables it.
    pub failed_logins: u32,
    /// Open client sessions.
    pub sessions: usize,
    /// Open event streams of clients, not counting those of a single request.
    pub streams: usize,
    /// Self-registered clients, and clients looked up by their id, that nobody has logged in with yet.
    pub unused_clients: usize,
    /// Messages queued for a client that reads slowly or has no open stream.
    pub outbox_messages: usize,
    /// Pending upstream questions per client.
    pub questions: usize,
    /// Suspended calls that wait for the next request of a stateless client.
    pub suspended_calls: usize,
    /// Concurrent calls per module, unless its server sets another number.
    pub module_concurrency: usize,
    /// Queued calls per module.
    pub module_queue: usize,
    /// Maximum retries per call, whatever its tool or caller requests.
    pub retry_attempts: u32,
    /// Consecutive failures that open a module's circuit breaker; zero disables it.
    pub breaker_failures: u32,
    /// Total size of the result cache; zero disables it.
    pub cache_bytes: usize,
    /// Maximum size of a cached result.
    pub cache_entry_bytes: usize,
    /// Queued audit records, including those of running calls.
    pub audit_queue: usize,
    /// Processes of stdio upstreams. At the limit, upstreams that are called replace idle ones.
    pub stdio_processes: usize,
    /// Stdio upstreams that start at the same time, those with waiting requests first; zero means twice the number of
    /// processors, at least four.
    pub starting: usize,
    /// Lines of stderr retained per upstream.
    pub stderr_lines: usize,
    /// Items per page of a list; zero disables paging.
    pub list_page: usize,
    /// Total size of all lists of one upstream.
    pub list_bytes: usize,
    /// Pages per list of an upstream.
    pub list_pages: usize,
    /// Distinct session-specific lists, from servers that offer one session something else. Beyond it, sessions see the
    /// shared list.
    pub own_lists: usize,
    /// Estimated tokens of the module list that every conversation receives.
    pub menu_tokens: usize,
    /// Concurrent batches.
    pub batches: usize,
    /// Tasks per batch, and runs of one task over the elements of a list.
    pub batch_tasks: usize,
    /// Concurrent tasks per batch, whatever the batch requests.
    pub batch_concurrency: usize,
    /// Maximum size of a compact answer; longer ones are trimmed and saved in the result store.
    pub compact_bytes: usize,
    /// Answers in the result store, of all callers.
    pub results: usize,
    /// Total size of the result store.
    pub result_bytes: usize,
    /// Total memory of cached views; the least recently used are evicted.
    pub view_bytes: usize,
    /// Concurrent jq programs.
    pub jq_processes: usize,
    /// Memory of one jq program.
    pub jq_bytes: usize,
    /// Time for a client to send its headers.
    pub header_timeout: Duration,
    /// Time for a client to send a body.
    pub body_timeout: Duration,
    /// Time before an idle client connection is closed.
    pub idle_timeout: Duration,
    /// Time before an idle session ends.
    pub session_idle: Duration,
    /// Time for one call; progress and open questions extend it.
    pub call_timeout: Duration,
    /// Maximum timeout that a call may request.
    pub call_timeout_max: Duration,
    /// First pause of an open circuit breaker; it doubles each time a probe fails.
    pub breaker_pause: Duration,
    /// Maximum pause of an open circuit breaker.
    pub breaker_pause_max: Duration,
    /// Time for a client to answer a question.
    pub question_timeout: Duration,
    /// Time for a client to resume a broken stream.
    pub resume: Duration,
    /// Time for an upstream to start and answer `initialize`.
    pub start_timeout: Duration,
    /// Time to wait for the first list of a module that a request names.
    pub first_list: Duration,
    /// Time to wait for unknown lists when a request needs all of them.
    pub all_lists: Duration,
    /// Time for which a list counts as fresh.
    pub list_ttl: Duration,
    /// Time without a call after which a stdio upstream is stopped.
    pub idle_stop: Duration,
    /// Time for which the result store keeps an answer.
    pub result_age: Duration,
    /// Time for one jq program.
    pub jq_timeout: Duration,
    /// Time between announcing the shutdown to load balancers and starting it.
    pub leave: Duration,
    /// Time for running calls to finish at shutdown; the config's default is `call_timeout`.
    pub drain: Duration,
    /// Time for which data read from the store stays valid without a refresh (`store.max_staleness`).
    pub max_staleness: Duration,
}

/// Maximum line length from a stdio upstream, and the name of the limit that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimit {
    pub bytes: usize,
    pub name: &'static str,
}

impl Limits {
    /// Returns the line limit of stdio upstreams: `answer_bytes`, unless the deprecated `line_bytes` is set.
    pub fn stdio_line(&self) -> LineLimit {
        match self.line_bytes {
            Some(bytes) => LineLimit { bytes, name: "line_bytes" },
            None => LineLimit { bytes: self.answer_bytes, name: "answer_bytes" },
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            body_bytes: 8 * MIB,
            answer_bytes: 64 * MIB,
            line_bytes: None,
            connections: 4096,
            caller_share: 50,
            failed_logins: 30,
            sessions: 10_000,
            streams: 2048,
            unused_clients: 1000,
            outbox_messages: 256,
            questions: 32,
            suspended_calls: 1000,
            module_concurrency: 256,
            module_queue: 1024,
            retry_attempts: 5,
            breaker_failures: 10,
            cache_bytes: 64 * MIB,
            cache_entry_bytes: MIB,
            audit_queue: 10_000,
            stdio_processes: 64,
            starting: 0,
            stderr_lines: 200,
            list_page: 0,
            list_bytes: 32 * MIB,
            list_pages: 1000,
            own_lists: 256,
            menu_tokens: 1200,
            batches: 64,
            batch_tasks: 1000,
            batch_concurrency: 100,
            compact_bytes: 32 * 1024,
            results: 1000,
            result_bytes: 64 * MIB,
            view_bytes: 96 * MIB,
            jq_processes: 4,
            jq_bytes: 256 * MIB,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            session_idle: Duration::from_secs(3600),
            call_timeout: Duration::from_secs(30),
            call_timeout_max: Duration::from_secs(600),
            breaker_pause: Duration::from_secs(5),
            breaker_pause_max: Duration::from_secs(60),
            question_timeout: Duration::from_secs(600),
            resume: Duration::from_secs(30),
            start_timeout: Duration::from_secs(60),
            first_list: Duration::from_secs(10),
            all_lists: Duration::from_secs(2),
            list_ttl: Duration::from_secs(600),
            idle_stop: Duration::from_secs(600),
            result_age: Duration::from_secs(1800),
            jq_timeout: Duration::from_secs(2),
            leave: Duration::ZERO,
            drain: Duration::from_secs(30),
            max_staleness: Duration::from_secs(30),
        }
    }
}

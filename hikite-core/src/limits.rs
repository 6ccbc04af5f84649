//! Every limit of the product with its default: the `limits` section of the config. Zero means none where a
//! comment says so.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body and the longest line on stdin.
    pub body_bytes: usize,
    /// The largest answer taken from an upstream, whatever its transport.
    pub answer_bytes: usize,
    /// Deprecated: the longest line taken from a stdio upstream, where it is to be another than `answer_bytes`.
    pub line_bytes: Option<usize>,
    /// Open client connections.
    pub connections: usize,
    /// Of connections, sessions, streams, suspended calls, batches, programs in jq and unused clients: the percentage that
    /// one caller may have, or one address where nobody is known yet. 100 means no share.
    pub caller_share: usize,
    /// Wrong tokens from one address in a minute, after which no more are looked at for a while; zero means any number.
    pub failed_logins: u32,
    /// Open client sessions.
    pub sessions: usize,
    /// Open event streams of clients, without those that belong to one request.
    pub streams: usize,
    /// Clients that registered themselves, or were looked up, and that nobody has logged in with yet.
    pub unused_clients: usize,
    /// Messages kept for a client that reads slowly or has no stream open.
    pub outbox_messages: usize,
    /// Questions of upstreams that may wait for one client.
    pub questions: usize,
    /// Calls that wait for the next request of a client without a session.
    pub parked_calls: usize,
    /// Calls of one module that run at once, unless its server says otherwise.
    pub module_concurrency: usize,
    /// Calls of one module that wait for their turn.
    pub module_queue: usize,
    /// Further attempts of one call, whatever its tool or its caller say.
    pub retry_attempts: u32,
    /// Failures in a row after which a module is left alone for a while; zero means never.
    pub breaker_failures: u32,
    /// Results that are kept to be given again, all together; zero means none.
    pub cache_bytes: usize,
    /// The largest result that is kept.
    pub cache_entry_bytes: usize,
    /// Records of the audit that wait to be written, and calls that run and will have one.
    pub audit_queue: usize,
    /// Processes of stdio upstreams. Where there are more, those that are called take the place of those that are not.
    pub stdio_processes: usize,
    /// Stdio upstreams that are started at a time, those first that a request waits for; zero means twice the
    /// processors, at least four.
    pub starting: usize,
    /// Lines of stderr kept per upstream.
    pub stderr_lines: usize,
    /// Items in one page of a list; zero means one page.
    pub list_page: usize,
    /// The lists of one upstream, all pages of all of them together.
    pub list_bytes: usize,
    /// Pages of one list of an upstream.
    pub list_pages: usize,
    /// Different lists of single sessions whose server offers them something else; who has one more sees the shared list.
    pub own_lists: usize,
    /// Tokens, as far as they can be guessed, of the list of modules that every conversation is shown.
    pub menu_tokens: usize,
    /// Batches that run at once.
    pub batches: usize,
    /// Tasks of one batch, and runs of one task for each element of a list.
    pub batch_tasks: usize,
    /// Tasks of one batch that run at once, whatever it asks for.
    pub batch_concurrency: usize,
    /// The longest compact answer; what is longer is shortened, and kept to be read on.
    pub compact_bytes: usize,
    /// Long answers that are kept to be read on, of all callers.
    pub results: usize,
    /// And what they may hold, all together.
    pub result_bytes: usize,
    /// Memory for the views of callers who see a part of the catalog, all together; those used longest ago are dropped.
    pub view_bytes: usize,
    /// Programs in jq that run at once.
    pub jq_processes: usize,
    /// Memory of one program in jq.
    pub jq_bytes: usize,
    /// For a client to send its headers.
    pub header_timeout: Duration,
    /// For a client to send a body.
    pub body_timeout: Duration,
    /// For a client connection without a request.
    pub idle_timeout: Duration,
    /// For a session without a request.
    pub session_idle: Duration,
    /// For one call; progress and open questions extend it.
    pub call_timeout: Duration,
    /// The most that a call may ask for itself.
    pub call_timeout_max: Duration,
    /// For how long a module is left alone at first; twice as long each time that it did not help.
    pub breaker_pause: Duration,
    /// And for how long at most.
    pub breaker_pause_max: Duration,
    /// For a client to answer a question.
    pub question_timeout: Duration,
    /// For a client to take up a stream that broke.
    pub resume: Duration,
    /// For an upstream to start and answer `initialize`.
    pub start_timeout: Duration,
    /// For the first list of a module that a request names.
    pub first_list: Duration,
    /// For lists never seen, when a request wants them all.
    pub all_lists: Duration,
    /// How long a list counts as fresh.
    pub list_ttl: Duration,
    /// After how long without a call a stdio upstream is stopped.
    pub idle_stop: Duration,
    /// For a long answer to be read on.
    pub result_age: Duration,
    /// For one program in jq.
    pub jq_timeout: Duration,
    /// For load balancers to hear that we are about to stop, before we do.
    pub leave: Duration,
    /// For running calls to finish when we stop; the config's default is `call_timeout`.
    pub drain: Duration,
    /// For how long what the store said counts without a new answer (`store.max_staleness`).
    pub max_staleness: Duration,
}

/// The longest line taken from a stdio upstream, and the name of the limit that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimit {
    pub bytes: usize,
    pub name: &'static str,
}

impl Limits {
    /// The bound on answers of stdio upstreams: the one on all answers, unless the deprecated one is set.
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
            parked_calls: 1000,
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

//! The `limits` section: the raw form of `hikite_core::limits::Limits`, with amounts as people write them.

use std::time::Duration;

use hikite_core::limits::Limits;
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::unit::{AmountFault, ConfigDuration, Size};

/// Every limit of the program. What is left out keeps its default.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(crate) struct LimitsFile {
    /// The largest request body and the longest line on stdin.
    #[schemars(extend("default" = "8MiB"))]
    pub(crate) body_bytes: Option<Size>,
    /// The largest answer taken from an upstream, whatever its transport.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) answer_bytes: Option<Size>,
    /// Deprecated: `answer_bytes` bounds the answers of stdio upstreams too. Where it is set, it is the longest line taken
    /// from a stdio upstream.
    #[schemars(extend("deprecated" = true))]
    pub(crate) line_bytes: Option<Size>,
    /// Open client connections.
    #[schemars(extend("default" = 4096))]
    pub(crate) connections: Option<usize>,
    /// Of connections, sessions, streams, suspended calls, batches, programs in jq and unused clients: the percentage that
    /// one caller may have, or one address where nobody is known yet. 100 means no share.
    #[schemars(extend("default" = 50))]
    pub(crate) caller_share: Option<usize>,
    /// Wrong tokens from one address in a minute, after which no more are looked at for a while; zero means any number.
    #[schemars(extend("default" = 30))]
    pub(crate) failed_logins: Option<usize>,
    /// Open client sessions.
    #[schemars(extend("default" = 10_000))]
    pub(crate) sessions: Option<usize>,
    /// Open event streams of clients, without those that belong to one request.
    #[schemars(extend("default" = 2048))]
    pub(crate) streams: Option<usize>,
    /// Clients that registered themselves, or were looked up, and that nobody has logged in with yet.
    #[schemars(extend("default" = 1000))]
    pub(crate) unused_clients: Option<usize>,
    /// Messages kept for a client that reads slowly or has no stream open.
    #[schemars(extend("default" = 256))]
    pub(crate) outbox_messages: Option<usize>,
    /// Questions of upstreams that may wait for one client.
    #[schemars(extend("default" = 32))]
    pub(crate) questions: Option<usize>,
    /// Calls that wait for the next request of a client without a session.
    #[schemars(extend("default" = 1000))]
    pub(crate) suspended_calls: Option<usize>,
    /// Deprecated name of `suspended_calls`.
    #[schemars(extend("deprecated" = true))]
    pub(crate) parked_calls: Option<usize>,
    /// Calls of one module that run at once, unless its server says otherwise.
    #[schemars(extend("default" = 256))]
    pub(crate) module_concurrency: Option<usize>,
    /// Calls of one module that wait for their turn.
    #[schemars(extend("default" = 1024))]
    pub(crate) module_queue: Option<usize>,
    /// Further attempts of one call, whatever its tool or its caller say; zero means none.
    #[schemars(extend("default" = 5))]
    pub(crate) retry_attempts: Option<usize>,
    /// Failures in a row after which a server is left alone for a while; zero means never.
    #[schemars(extend("default" = 10))]
    pub(crate) breaker_failures: Option<usize>,
    /// Results that are kept to be given again, all together; zero means none.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) cache_bytes: Option<Size>,
    /// The largest result that is kept.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) cache_entry_bytes: Option<Size>,
    /// Records of the audit that wait to be written, and calls that run and will have one.
    #[schemars(extend("default" = 10_000))]
    pub(crate) audit_queue: Option<usize>,
    /// Processes of stdio upstreams. Where there are more, those that are called take the place of those that are not.
    #[schemars(extend("default" = 64))]
    pub(crate) stdio_processes: Option<usize>,
    /// Stdio upstreams that are started at a time, those first that a request waits for; zero means twice the
    /// processors, at least four.
    #[schemars(extend("default" = 0))]
    pub(crate) starting: Option<usize>,
    /// Lines of stderr kept per upstream.
    #[schemars(extend("default" = 200))]
    pub(crate) stderr_lines: Option<usize>,
    /// Items in one page of a list; zero means one page.
    #[schemars(extend("default" = 0))]
    pub(crate) list_page: Option<usize>,
    /// The lists of one upstream, all pages of all of them together.
    #[schemars(extend("default" = "32MiB"))]
    pub(crate) list_bytes: Option<Size>,
    /// Pages of one list of an upstream.
    #[schemars(extend("default" = 1000))]
    pub(crate) list_pages: Option<usize>,
    /// Different lists of single sessions whose server offers them something else; who has one more sees the shared list.
    #[schemars(extend("default" = 256))]
    pub(crate) own_lists: Option<usize>,
    /// Tokens, as far as they can be guessed, of the list of modules that every conversation is shown.
    #[schemars(extend("default" = 1200))]
    pub(crate) menu_tokens: Option<usize>,
    /// Batches that run at once.
    #[schemars(extend("default" = 64))]
    pub(crate) batches: Option<usize>,
    /// Tasks of one batch, and runs of one task for each element of a list.
    #[schemars(extend("default" = 1000))]
    pub(crate) batch_tasks: Option<usize>,
    /// Tasks of one batch that run at once, whatever it asks for.
    #[schemars(extend("default" = 100))]
    pub(crate) batch_concurrency: Option<usize>,
    /// The longest compact answer; what is longer is shortened, and kept to be read on.
    #[schemars(extend("default" = "32KiB"))]
    pub(crate) compact_bytes: Option<Size>,
    /// Long answers that are kept to be read on, of all callers.
    #[schemars(extend("default" = 1000))]
    pub(crate) results: Option<usize>,
    /// And what they may hold, all together.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) result_bytes: Option<Size>,
    /// Memory for the views of callers who see a part of the catalog, all together; those used longest ago are dropped.
    #[schemars(extend("default" = "96MiB"))]
    pub(crate) view_bytes: Option<Size>,
    /// Programs in jq that run at once.
    #[schemars(extend("default" = 4))]
    pub(crate) jq_processes: Option<usize>,
    /// Memory of one program in jq.
    #[schemars(extend("default" = "256MiB"))]
    pub(crate) jq_bytes: Option<Size>,
    /// For a client to send its headers.
    #[schemars(extend("default" = "10s"))]
    pub(crate) header_timeout: Option<ConfigDuration>,
    /// For a client to send a body.
    #[schemars(extend("default" = "30s"))]
    pub(crate) body_timeout: Option<ConfigDuration>,
    /// For a client connection without a request.
    #[schemars(extend("default" = "2m"))]
    pub(crate) idle_timeout: Option<ConfigDuration>,
    /// For a session without a request.
    #[schemars(extend("default" = "1h"))]
    pub(crate) session_idle: Option<ConfigDuration>,
    /// For one call; progress and open questions extend it.
    #[schemars(extend("default" = "30s"))]
    pub(crate) call_timeout: Option<ConfigDuration>,
    /// The most that a call may ask for itself.
    #[schemars(extend("default" = "10m"))]
    pub(crate) call_timeout_max: Option<ConfigDuration>,
    /// For how long a server is left alone at first; twice as long each time that it did not help.
    #[schemars(extend("default" = "5s"))]
    pub(crate) breaker_pause: Option<ConfigDuration>,
    /// And for how long at most.
    #[schemars(extend("default" = "1m"))]
    pub(crate) breaker_pause_max: Option<ConfigDuration>,
    /// For a client to answer a question.
    #[schemars(extend("default" = "10m"))]
    pub(crate) question_timeout: Option<ConfigDuration>,
    /// For a client to take up a stream that broke.
    #[schemars(extend("default" = "30s"))]
    pub(crate) resume: Option<ConfigDuration>,
    /// For an upstream to start and answer `initialize`.
    #[schemars(extend("default" = "1m"))]
    pub(crate) start_timeout: Option<ConfigDuration>,
    /// For the first list of a module that a request names.
    #[schemars(extend("default" = "10s"))]
    pub(crate) first_list: Option<ConfigDuration>,
    /// For lists never seen, when a request wants them all.
    #[schemars(extend("default" = "2s"))]
    pub(crate) all_lists: Option<ConfigDuration>,
    /// How long a list counts as fresh.
    #[schemars(extend("default" = "10m"))]
    pub(crate) list_ttl: Option<ConfigDuration>,
    /// After how long without a call a stdio upstream is stopped.
    #[schemars(extend("default" = "10m"))]
    pub(crate) idle_stop: Option<ConfigDuration>,
    /// For a long answer to be read on.
    #[schemars(extend("default" = "30m"))]
    pub(crate) result_age: Option<ConfigDuration>,
    /// For one program in jq.
    #[schemars(extend("default" = "2s"))]
    pub(crate) jq_timeout: Option<ConfigDuration>,
    /// For load balancers to hear from `/readyz` that hikite is about to stop, before it does.
    #[schemars(extend("default" = "0s"))]
    pub(crate) leave: Option<ConfigDuration>,
    /// For running calls to finish when hikite stops. Default: `call_timeout`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) drain: Option<ConfigDuration>,
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &LimitsFile) -> Limits {
    let default = Limits::default();
    let mut read = LimitsReader { check, path };
    Limits {
        body_bytes: read.size("body_bytes", raw.body_bytes.as_ref(), default.body_bytes),
        answer_bytes: read.size("answer_bytes", raw.answer_bytes.as_ref(), default.answer_bytes),
        line_bytes: read.deprecated_size("line_bytes", raw.line_bytes.as_ref(), "answer_bytes"),
        connections: read.count("connections", raw.connections, default.connections),
        caller_share: read.percent("caller_share", raw.caller_share, default.caller_share),
        failed_logins: small(raw.failed_logins, default.failed_logins),
        sessions: read.count("sessions", raw.sessions, default.sessions),
        streams: read.count("streams", raw.streams, default.streams),
        unused_clients: read.count("unused_clients", raw.unused_clients, default.unused_clients),
        outbox_messages: read.count("outbox_messages", raw.outbox_messages, default.outbox_messages),
        questions: read.count("questions", raw.questions, default.questions),
        suspended_calls: read.renamed_count(
            ("suspended_calls", raw.suspended_calls),
            ("parked_calls", raw.parked_calls),
            default.suspended_calls,
        ),
        module_concurrency: read.count("module_concurrency", raw.module_concurrency, default.module_concurrency),
        module_queue: raw.module_queue.unwrap_or(default.module_queue),
        retry_attempts: small(raw.retry_attempts, default.retry_attempts),
        breaker_failures: small(raw.breaker_failures, default.breaker_failures),
        cache_bytes: read.any_size("cache_bytes", raw.cache_bytes.as_ref(), default.cache_bytes),
        cache_entry_bytes: read.size("cache_entry_bytes", raw.cache_entry_bytes.as_ref(), default.cache_entry_bytes),
        audit_queue: read.count("audit_queue", raw.audit_queue, default.audit_queue),
        stdio_processes: read.count("stdio_processes", raw.stdio_processes, default.stdio_processes),
        starting: raw.starting.unwrap_or(default.starting),
        stderr_lines: raw.stderr_lines.unwrap_or(default.stderr_lines),
        list_page: raw.list_page.unwrap_or(default.list_page),
        list_bytes: read.size("list_bytes", raw.list_bytes.as_ref(), default.list_bytes),
        list_pages: read.count("list_pages", raw.list_pages, default.list_pages),
        own_lists: read.count("own_lists", raw.own_lists, default.own_lists),
        menu_tokens: read.count("menu_tokens", raw.menu_tokens, default.menu_tokens),
        batches: read.count("batches", raw.batches, default.batches),
        batch_tasks: read.count("batch_tasks", raw.batch_tasks, default.batch_tasks),
        batch_concurrency: read.count("batch_concurrency", raw.batch_concurrency, default.batch_concurrency),
        compact_bytes: read.size("compact_bytes", raw.compact_bytes.as_ref(), default.compact_bytes),
        results: read.count("results", raw.results, default.results),
        result_bytes: read.size("result_bytes", raw.result_bytes.as_ref(), default.result_bytes),
        view_bytes: read.size("view_bytes", raw.view_bytes.as_ref(), default.view_bytes),
        jq_processes: read.count("jq_processes", raw.jq_processes, default.jq_processes),
        jq_bytes: read.size("jq_bytes", raw.jq_bytes.as_ref(), default.jq_bytes),
        ..times(&mut read, raw)
    }
}

/// Reads the durations.
fn times(read: &mut LimitsReader<'_, '_, '_>, raw: &LimitsFile) -> Limits {
    let default = Limits::default();
    let call_timeout = read.timeout("call_timeout", raw.call_timeout.as_ref(), default.call_timeout);
    Limits {
        header_timeout: read.timeout("header_timeout", raw.header_timeout.as_ref(), default.header_timeout),
        body_timeout: read.timeout("body_timeout", raw.body_timeout.as_ref(), default.body_timeout),
        idle_timeout: read.timeout("idle_timeout", raw.idle_timeout.as_ref(), default.idle_timeout),
        session_idle: read.timeout("session_idle", raw.session_idle.as_ref(), default.session_idle),
        call_timeout,
        call_timeout_max: read.timeout("call_timeout_max", raw.call_timeout_max.as_ref(), default.call_timeout_max),
        breaker_pause: read.timeout("breaker_pause", raw.breaker_pause.as_ref(), default.breaker_pause),
        breaker_pause_max: read.timeout("breaker_pause_max", raw.breaker_pause_max.as_ref(), default.breaker_pause_max),
        question_timeout: read.timeout("question_timeout", raw.question_timeout.as_ref(), default.question_timeout),
        resume: read.span("resume", raw.resume.as_ref(), default.resume),
        start_timeout: read.timeout("start_timeout", raw.start_timeout.as_ref(), default.start_timeout),
        first_list: read.span("first_list", raw.first_list.as_ref(), default.first_list),
        all_lists: read.span("all_lists", raw.all_lists.as_ref(), default.all_lists),
        list_ttl: read.span("list_ttl", raw.list_ttl.as_ref(), default.list_ttl),
        idle_stop: read.timeout("idle_stop", raw.idle_stop.as_ref(), default.idle_stop),
        result_age: read.timeout("result_age", raw.result_age.as_ref(), default.result_age),
        jq_timeout: read.timeout("jq_timeout", raw.jq_timeout.as_ref(), default.jq_timeout),
        leave: read.span("leave", raw.leave.as_ref(), default.leave),
        drain: read.span("drain", raw.drain.as_ref(), call_timeout),
        ..default
    }
}

/// Converts a count to `u32`, saturating.
fn small(raw: Option<usize>, default: u32) -> u32 {
    raw.map_or(default, |count| u32::try_from(count).unwrap_or(u32::MAX))
}

struct LimitsReader<'c, 'a, 'r> {
    check: &'c mut ConfigChecker<'a, 'r>,
    path: &'c ConfigPath<'c>,
}

impl LimitsReader<'_, '_, '_> {
    fn size(&mut self, key: &str, raw: Option<&Size>, default: usize) -> usize {
        let size = self.any_size(key, raw, default);
        self.positive(key, size, &0)
    }

    /// Reads a size that another limit replaced.
    fn deprecated_size(&mut self, key: &str, raw: Option<&Size>, successor: &str) -> Option<usize> {
        let size = self.size(key, Some(raw?), usize::MAX);
        let message = format!("deprecated: use `limits.{successor}`");
        self.check.report.warning(&self.path.key(key), message);
        Some(size)
    }

    /// Reads a count that may stand under its previous name.
    fn renamed_count(
        &mut self,
        (key, raw): (&str, Option<usize>),
        (old_key, old): (&str, Option<usize>),
        default: usize,
    ) -> usize {
        if old.is_some() {
            let message = format!("deprecated: use `limits.{key}`");
            self.check.report.warning(&self.path.key(old_key), message);
        }
        match raw {
            None => self.count(old_key, old, default),
            some => self.count(key, some, default),
        }
    }

    fn any_size(&mut self, key: &str, raw: Option<&Size>, default: usize) -> usize {
        raw.and_then(|raw| self.read(key, raw.read())).unwrap_or(default)
    }

    fn count(&mut self, key: &str, raw: Option<usize>, default: usize) -> usize {
        self.positive(key, raw.unwrap_or(default), &0)
    }

    fn percent(&mut self, key: &str, raw: Option<usize>, default: usize) -> usize {
        let percent = self.count(key, raw, default);
        if percent > 100 {
            let hint = Some("100 lets one caller use everything.".into());
            self.check.report.error(&self.path.key(key), "must be a percentage from 1 to 100", hint);
        }
        percent
    }

    fn span(&mut self, key: &str, raw: Option<&ConfigDuration>, default: Duration) -> Duration {
        raw.and_then(|raw| self.read(key, raw.read())).unwrap_or(default)
    }

    fn timeout(&mut self, key: &str, raw: Option<&ConfigDuration>, default: Duration) -> Duration {
        let span = self.span(key, raw, default);
        self.positive(key, span, &Duration::ZERO)
    }

    fn read<T>(&mut self, key: &str, read: Result<T, AmountFault>) -> Option<T> {
        read.map_or_else(|(message, hint)| self.check.fail(&self.path.key(key), message, hint), Some)
    }

    fn positive<T: PartialEq>(&mut self, key: &str, value: T, zero: &T) -> T {
        if value == *zero {
            let hint = Some("Leave it out for the default.".into());
            self.check.report.error(&self.path.key(key), "must be greater than zero", hint);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Config, ConfigEnvironment, schema, show};

    #[test]
    fn the_defaults_of_the_schema_are_those_of_the_program() {
        let schema = schema();
        let written: serde_json::Map<String, serde_json::Value> = schema["$defs"]["Limits"]["properties"]
            .as_object()
            .expect("properties")
            .iter()
            // The program shows a limit under its current name only.
            .filter(|(key, _)| *key != "parked_calls")
            .map(|(key, property)| (key.clone(), property["default"].clone()))
            .collect();
        let environment = ConfigEnvironment { env: &|_| None, read: &|_| Err(std::io::ErrorKind::NotFound.into()) };
        let defaults = Config::parse("{}", Path::new("x"), environment).expect("empty");
        assert_eq!(show(&defaults)["limits"], serde_json::Value::Object(written));
    }
}

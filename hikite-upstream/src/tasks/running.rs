//! Running tasks of one connection. As long as one may be running, the connection is not idle.

use std::collections::HashMap;
use std::time::Duration;

use hikite_core::json::Object;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Lifetime of a task without a TTL.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60 * 60);
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of tasks. The one that expires first is dropped.
const TASKS: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct RunningTasks(Mutex<HashMap<String, Instant>>);

impl RunningTasks {
    pub(super) fn begin(&self, id: &str, task: &Object, now: Instant) {
        let mut until = self.0.lock();
        until.retain(|_, end| *end > now);
        if until.len() >= TASKS
            && let Some(first) = until.iter().min_by_key(|(_, end)| **end).map(|(id, _)| id.clone())
        {
            until.remove(&first);
        }
        until.insert(id.to_owned(), now + lifetime(task));
    }

    pub(crate) fn end(&self, id: &str) {
        self.0.lock().remove(id);
    }

    pub(crate) fn any(&self, now: Instant) -> bool {
        self.0.lock().values().any(|end| *end > now)
    }
}

fn lifetime(task: &Object) -> Duration {
    let ttl = task.get("ttlMs").and_then(|ttl| ttl.decode::<f64>().ok());
    let ttl = ttl.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
    ttl.unwrap_or(DEFAULT_LIFETIME).min(LIFETIME_MAX)
}

#[cfg(test)]
mod tests {
    use hikite_core::json::Raw;

    use super::*;

    #[test]
    fn a_task_runs_until_it_ends_or_its_time_is_over() {
        let task = |text: &str| Raw::parse(text.to_owned()).expect("valid").object().expect("an object");
        let (running, now) = (RunningTasks::default(), Instant::now());
        running.begin("a", &task(r#"{"ttlMs":60000}"#), now);
        assert!(running.any(now) && !running.any(now + Duration::from_secs(61)));
        running.begin("b", &task(r#"{"ttlMs":null}"#), now);
        assert!(running.any(now + DEFAULT_LIFETIME / 2) && !running.any(now + DEFAULT_LIFETIME));
        running.end("a");
        running.end("b");
        assert!(!running.any(now));
        assert_eq!(lifetime(&task(r#"{"ttlMs":1e300}"#)), DEFAULT_LIFETIME);
        assert_eq!(lifetime(&task(r#"{"ttlMs":1e15}"#)), LIFETIME_MAX);
    }
}

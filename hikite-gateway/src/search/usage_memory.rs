//! Usage memory: pairs of a query and the tool it led to, per project. Weights grow with use and decay with time; the
//! weakest pairs are evicted at the limit. Held in memory and written to the store off the path of requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::key::ToolKey;
use hikite_core::search::UsageTrace;
use hikite_store::{SearchMemoryRow, Store};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::catalog_index::{CatalogIndex, IndexLayout};
use super::query_history::QueryRecord;
use super::{MemorySettings, Search};
use crate::conversation::Conversation;
use hikite_store::clock::now_ms;

/// Maximum number of pairs per tool and project, so that a busy tool does not evict all others.
const PER_TOOL: usize = 50;
/// Maximum weight of a pair.
const WEIGHT_MAX: f32 = 4.0;
/// Weight below which a pair is dropped.
const WEIGHT_MIN: f32 = 0.02;
/// Delay between a success and its write, to batch writes.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum age of cached traces.
const STALE: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct UsageMemory(Mutex<MemoryState>);

#[derive(Default)]
struct MemoryState {
    settings: MemorySettings,
    projects: HashMap<String, ProjectMemory>,
    changed: HashSet<PairId>,
    gone: HashSet<PairId>,
    /// A write is scheduled.
    writing: bool,
}

/// Project, query and tool.
type PairId = (String, String, ToolKey);

#[derive(Default)]
struct ProjectMemory {
    pairs: HashMap<(String, ToolKey), SearchMemoryRow>,
    cached: Vec<CachedTraces>,
}

/// Cached traces for one index layout and model, valid until a pair changes.
struct CachedTraces {
    layout: Arc<IndexLayout>,
    model: String,
    at: Instant,
    traces: Arc<Vec<UsageTrace>>,
}

/// Returns a weight after exponential decay.
pub fn decayed(weight: f32, used_at: u64, now_ms: u64, half_life: Duration) -> f32 {
    let age = Duration::from_millis(now_ms.saturating_sub(used_at));
    let half_life = half_life.max(Duration::from_secs(1));
    weight * (-(age.as_secs_f32() / half_life.as_secs_f32())).exp2()
}

impl UsageMemory {
    pub(super) fn limit(&self, settings: MemorySettings) {
        let mut state = self.0.lock();
        state.settings = settings;
        state.projects.values_mut().for_each(|project| project.cached.clear());
    }

    /// Returns the project's pairs as traces for this index.
    pub(super) fn traces(&self, project: &str, ready: &CatalogIndex, model: &str) -> Arc<Vec<UsageTrace>> {
        let mut state = self.0.lock();
        let settings = state.settings;
        let Some(project) = state.projects.get_mut(project).filter(|_| settings.enabled) else {
            return Arc::default();
        };
        let cached = project.cached.iter().find(|cached| {
            Arc::ptr_eq(&cached.layout, &ready.layout) && cached.model == model && cached.at.elapsed() < STALE
        });
        if let Some(cached) = cached {
            return Arc::clone(&cached.traces);
        }
        let now = now_ms();
        let trace = |pair: &SearchMemoryRow| {
            Some(UsageTrace {
                document: ready.place(&pair.key)?,
                terms: pair.terms.clone(),
                vector: pair.vector.clone().filter(|_| pair.model == model),
                weight: decayed(pair.weight, pair.used_at, now, settings.half_life),
            })
        };
        let traces: Arc<Vec<UsageTrace>> = Arc::new(project.pairs.values().filter_map(trace).collect());
        project.cached.retain(|cached| Arc::ptr_eq(&cached.layout, &ready.layout) && cached.model != model);
        let layout = Arc::clone(&ready.layout);
        let cached = CachedTraces { layout, model: model.to_owned(), at: Instant::now(), traces: Arc::clone(&traces) };
        project.cached.push(cached);
        traces
    }

    /// Strengthens the pair of a query and a tool after a success.
    fn strengthen(&self, project: &str, query_record: &QueryRecord, key: &ToolKey, now_ms: u64) {
        let mut state = self.0.lock();
        let settings = state.settings;
        if !settings.enabled || settings.pairs == 0 {
            return;
        }
        let known = state.projects.entry(project.to_owned()).or_default();
        known.cached.clear();
        let pair = known.pairs.entry((query_record.query.clone(), key.clone())).or_insert_with(|| SearchMemoryRow {
            project: project.to_owned(),
            query: query_record.query.clone(),
            key: key.clone(),
            text: None,
            terms: query_record.terms.clone(),
            model: String::new(),
            vector: None,
            weight: 0.0,
            used_at: now_ms,
        });
        let left = decayed(pair.weight, pair.used_at, now_ms, settings.half_life);
        pair.weight = (left + 1.0).min(WEIGHT_MAX);
        pair.used_at = now_ms;
        pair.text.clone_from(&query_record.text);
        if query_record.vector.is_some() {
            pair.vector.clone_from(&query_record.vector);
            pair.model.clone_from(&query_record.model);
        }
        let gone = known.bound(settings, key, now_ms);
        state.changed.insert((project.to_owned(), query_record.query.clone(), key.clone()));
        for (query, key) in gone {
            let id = (project.to_owned(), query, key);
            state.changed.remove(&id);
            state.gone.insert(id);
        }
    }

    /// Replaces the memory with the store's rows.
    fn take(&self, rows: Vec<SearchMemoryRow>) {
        let now = now_ms();
        let mut state = self.0.lock();
        let half_life = state.settings.half_life;
        state.projects.clear();
        for row in rows {
            if decayed(row.weight, row.used_at, now, half_life) >= WEIGHT_MIN {
                let project = state.projects.entry(row.project.clone()).or_default();
                project.pairs.insert((row.query.clone(), row.key.clone()), row);
            }
        }
    }

    /// Writes the changes. A failed write is retried with the next one.
    pub(super) async fn write(&self, store: &Store) {
        let (pairs, changed, gone) = {
            let mut state = self.0.lock();
            let changed = std::mem::take(&mut state.changed);
            let gone: Vec<PairId> = std::mem::take(&mut state.gone).into_iter().collect();
            let pair = |(project, query, key): &PairId| {
                state.projects.get(project)?.pairs.get(&(query.clone(), key.clone())).cloned()
            };
            let pairs: Vec<SearchMemoryRow> = changed.iter().filter_map(pair).collect();
            (pairs, changed, gone)
        };
        if pairs.is_empty() && gone.is_empty() {
            return;
        }
        if let Err(error) = store.search().remember(&pairs, &gone).await {
            tracing::warn!(%error, "failed to store the usage history of search");
            let mut state = self.0.lock();
            state.changed.extend(changed);
            state.gone.extend(gone);
        }
    }
}

impl ProjectMemory {
    /// Evicts the weakest pairs until all limits hold.
    fn bound(&mut self, settings: MemorySettings, tool: &ToolKey, now_ms: u64) -> Vec<(String, ToolKey)> {
        let weight = |pair: &SearchMemoryRow| decayed(pair.weight, pair.used_at, now_ms, settings.half_life);
        let mut gone = Vec::new();
        let of_tool = self.pairs.keys().filter(|(_, key)| key == tool).count();
        let mut too_many =
            [(of_tool.saturating_sub(PER_TOOL), true), (self.pairs.len().saturating_sub(settings.pairs), false)];
        for (count, only_tool) in &mut too_many {
            while *count > 0 {
                *count -= 1;
                let pairs = self.pairs.iter().filter(|((_, key), _)| !*only_tool || key == tool);
                let weakest = pairs.min_by(|a, b| weight(a.1).total_cmp(&weight(b.1)));
                let Some(id) = weakest.map(|(id, _)| id.clone()) else { break };
                self.pairs.remove(&id);
                gone.push(id);
            }
        }
        gone
    }
}

impl Search {
    /// Reads the memory from the store, after writing pending changes.
    pub(crate) async fn read_usage_memory(&self) -> Result<(), hikite_core::error::Error> {
        if !self.settings.load().memory.enabled {
            return Ok(());
        }
        self.memory.write(&self.store).await;
        self.memory.take(self.store.search().remembered(None).await?);
        Ok(())
    }

    /// Records the success of a tool that was shown in this conversation.
    pub(crate) fn record_success(&self, conversation: &Conversation, tool: &ToolKey) {
        let Some(query_record) = self.conversations.query_of(conversation, tool) else { return };
        let project = conversation.0.project.as_deref().unwrap_or_default();
        self.memory.strengthen(project, &query_record, tool, now_ms());
        self.schedule_write();
    }

    /// Records the hits of a query for the conversation.
    pub(crate) fn note(&self, conversation: Conversation, query_record: QueryRecord, tools: Vec<ToolKey>) {
        self.conversations.note(conversation, query_record, tools);
    }

    fn schedule_write(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if std::mem::replace(&mut self.memory.0.lock().writing, true) {
            return;
        }
        let (this, stopping) = (self.this.clone(), self.stopping.clone());
        let write = async move {
            // At shutdown the pending changes are written at once.
            stopping.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
            let Some(search) = this.upgrade() else { return };
            search.memory.0.lock().writing = false;
            search.memory.write(&search.store).await;
        };
        self.tasks.spawn_on(write, &runtime);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    fn query_record(word: u64) -> QueryRecord {
        let query = format!("q{word}");
        QueryRecord { query, terms: vec![word], model: String::new(), vector: None, text: Some("words".into()) }
    }

    fn memory(pairs: usize) -> UsageMemory {
        let memory = UsageMemory::default();
        memory.limit(MemorySettings { pairs, ..MemorySettings::default() });
        memory
    }

    fn weights(memory: &UsageMemory, project: &str) -> Vec<(String, f32)> {
        let state = memory.0.lock();
        let pairs = state.projects.get(project).into_iter().flat_map(|project| project.pairs.values());
        let mut all: Vec<(String, f32)> = pairs.map(|pair| (pair.query.clone(), pair.weight)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn a_pair_grows_with_use_and_fades_with_time() {
        let (memory, tool) = (memory(100), ToolKey::new("m", "t"));
        memory.strengthen("p", &query_record(1), &tool, DAY);
        assert_eq!(weights(&memory, "p"), [("q1".to_owned(), 1.0)]);
        memory.strengthen("p", &query_record(1), &tool, 31 * DAY);
        assert_eq!(weights(&memory, "p"), [("q1".to_owned(), 1.5)]);
        for _ in 0..20 {
            memory.strengthen("p", &query_record(1), &tool, 31 * DAY);
        }
        assert_eq!(weights(&memory, "p"), [("q1".to_owned(), WEIGHT_MAX)]);
        assert!(weights(&memory, "other").is_empty(), "projects keep to themselves");
    }

    #[test]
    fn a_project_and_a_tool_hold_only_so_many() {
        let memory = memory(60);
        for word in 0..80 {
            memory.strengthen("p", &query_record(word), &ToolKey::new("m", "busy"), DAY + word);
        }
        assert_eq!(weights(&memory, "p").len(), PER_TOOL);
        for word in 0..40 {
            memory.strengthen("p", &query_record(word), &ToolKey::new("m", format!("t{word}").as_str()), 9 * DAY);
        }
        let left = weights(&memory, "p");
        assert_eq!(left.len(), 60, "{left:?}");
        let state = memory.0.lock();
        assert_eq!(state.gone.len(), 30 + 30, "what is let go of leaves the store, too");
        assert!(state.gone.is_disjoint(&state.changed));
    }

    #[test]
    fn what_is_off_remembers_nothing() {
        let memory = UsageMemory::default();
        memory.limit(MemorySettings { enabled: false, ..MemorySettings::default() });
        memory.strengthen("p", &query_record(1), &ToolKey::new("m", "t"), DAY);
        assert!(weights(&memory, "p").is_empty());
    }
}

//! Usage memory: pairs of a query and the tool it led to, per project. Weights grow with use and decay with time; the
//! weakest pairs are evicted at the limit. Held in memory and written to the store off the path of requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::key::ToolKey;
use hikite_core::search::Trace;
use hikite_store::{Remembered, Store};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::ready::{Layout, Ready};
use super::talk::Remark;
use super::{MemorySettings, Search};
use crate::clock::now_ms;
use crate::conversation::Conversation;
use crate::gateway::Gateway;

/// Maximum number of pairs per tool and project, so that a busy tool does not evict all others.
const PER_TOOL: usize = 50;
/// Maximum weight of a pair.
const STRONGEST: f32 = 4.0;
/// Weight below which a pair is dropped.
const FADED: f32 = 0.02;
/// Delay between a success and its write, to batch writes.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum age of cached traces.
const STALE: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    settings: MemorySettings,
    projects: HashMap<String, Project>,
    changed: HashSet<Id>,
    gone: HashSet<Id>,
    /// A write is scheduled.
    writing: bool,
}

/// Project, query and tool.
type Id = (String, String, ToolKey);

#[derive(Default)]
struct Project {
    pairs: HashMap<(String, ToolKey), Remembered>,
    told: Vec<Told>,
}

/// Cached traces for one index layout and model, valid until a pair changes.
struct Told {
    layout: Arc<Layout>,
    model: String,
    at: Instant,
    traces: Arc<Vec<Trace>>,
}

/// Returns a weight after exponential decay.
pub fn faded(weight: f32, used_at: u64, now_ms: u64, half_life: Duration) -> f32 {
    let age = Duration::from_millis(now_ms.saturating_sub(used_at));
    let half_life = half_life.max(Duration::from_secs(1));
    weight * (-(age.as_secs_f32() / half_life.as_secs_f32())).exp2()
}

impl Memory {
    pub(super) fn limit(&self, settings: MemorySettings) {
        let mut state = self.0.lock();
        state.settings = settings;
        state.projects.values_mut().for_each(|project| project.told.clear());
    }

    /// Returns the project's pairs as traces for this index.
    pub(super) fn traces(&self, project: &str, ready: &Ready, model: &str) -> Arc<Vec<Trace>> {
        let mut state = self.0.lock();
        let settings = state.settings;
        let Some(project) = state.projects.get_mut(project).filter(|_| settings.enabled) else {
            return Arc::default();
        };
        let told = project.told.iter().find(|told| {
            Arc::ptr_eq(&told.layout, &ready.layout) && told.model == model && told.at.elapsed() < STALE
        });
        if let Some(told) = told {
            return Arc::clone(&told.traces);
        }
        let now = now_ms();
        let trace = |pair: &Remembered| {
            Some(Trace {
                document: ready.place(&pair.key)?,
                terms: pair.terms.clone(),
                vector: pair.vector.clone().filter(|_| pair.model == model),
                weight: faded(pair.weight, pair.used_at, now, settings.half_life),
            })
        };
        let traces: Arc<Vec<Trace>> = Arc::new(project.pairs.values().filter_map(trace).collect());
        project.told.retain(|told| Arc::ptr_eq(&told.layout, &ready.layout) && told.model != model);
        let layout = Arc::clone(&ready.layout);
        let told = Told { layout, model: model.to_owned(), at: Instant::now(), traces: Arc::clone(&traces) };
        project.told.push(told);
        traces
    }

    /// Strengthens the pair of a query and a tool after a success.
    fn strengthen(&self, project: &str, remark: &Remark, key: &ToolKey, now_ms: u64) {
        let mut state = self.0.lock();
        let settings = state.settings;
        if !settings.enabled || settings.pairs == 0 {
            return;
        }
        let known = state.projects.entry(project.to_owned()).or_default();
        known.told.clear();
        let pair = known.pairs.entry((remark.query.clone(), key.clone())).or_insert_with(|| Remembered {
            project: project.to_owned(),
            query: remark.query.clone(),
            key: key.clone(),
            text: None,
            terms: remark.terms.clone(),
            model: String::new(),
            vector: None,
            weight: 0.0,
            used_at: now_ms,
        });
        let left = faded(pair.weight, pair.used_at, now_ms, settings.half_life);
        pair.weight = (left + 1.0).min(STRONGEST);
        pair.used_at = now_ms;
        pair.text.clone_from(&remark.text);
        if remark.vector.is_some() {
            pair.vector.clone_from(&remark.vector);
            pair.model.clone_from(&remark.model);
        }
        let gone = known.bound(settings, key, now_ms);
        state.changed.insert((project.to_owned(), remark.query.clone(), key.clone()));
        for (query, key) in gone {
            let id = (project.to_owned(), query, key);
            state.changed.remove(&id);
            state.gone.insert(id);
        }
    }

    /// Replaces the memory with the store's rows.
    fn take(&self, rows: Vec<Remembered>) {
        let now = now_ms();
        let mut state = self.0.lock();
        let half_life = state.settings.half_life;
        state.projects.clear();
        for row in rows {
            if faded(row.weight, row.used_at, now, half_life) >= FADED {
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
            let gone: Vec<Id> = std::mem::take(&mut state.gone).into_iter().collect();
            let pair = |(project, query, key): &Id| {
                state.projects.get(project)?.pairs.get(&(query.clone(), key.clone())).cloned()
            };
            let pairs: Vec<Remembered> = changed.iter().filter_map(pair).collect();
            (pairs, changed, gone)
        };
        if pairs.is_empty() && gone.is_empty() {
            return;
        }
        if let Err(error) = store.remember(&pairs, &gone).await {
            tracing::warn!(%error, "what search remembers could not be written down");
            let mut state = self.0.lock();
            state.changed.extend(changed);
            state.gone.extend(gone);
        }
    }
}

impl Project {
    /// Evicts the weakest pairs until all limits hold.
    fn bound(&mut self, settings: MemorySettings, tool: &ToolKey, now_ms: u64) -> Vec<(String, ToolKey)> {
        let weight = |pair: &Remembered| faded(pair.weight, pair.used_at, now_ms, settings.half_life);
        let mut gone = Vec::new();
        let of_tool = self.pairs.keys().filter(|(_, key)| key == tool).count();
        let mut too_many = [
            (of_tool.saturating_sub(PER_TOOL), true),
            (self.pairs.len().saturating_sub(settings.pairs), false),
        ];
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

impl Gateway {
    /// Reads the memory from the store, after writing pending changes.
    pub(crate) async fn recall(&self) -> Result<(), hikite_core::error::Error> {
        if !self.search.settings.load().memory.enabled {
            return Ok(());
        }
        self.search.memory.write(&self.registry.store).await;
        self.search.memory.take(self.registry.store.remembered(None).await?);
        Ok(())
    }

    /// Records the success of a tool that was shown in this conversation.
    pub(crate) fn went_well(&self, conversation: &Conversation, tool: &ToolKey) {
        let Some(remark) = self.search.conversations.question_of(conversation, tool) else { return };
        let project = conversation.0.project.as_deref().unwrap_or_default();
        self.search.memory.strengthen(project, &remark, tool, now_ms());
        self.search.write_soon();
    }
}

impl Search {
    /// Records the hits of a query for the conversation.
    pub(crate) fn note(&self, conversation: Conversation, remark: Remark, tools: Vec<ToolKey>) {
        self.conversations.note(conversation, remark, tools);
    }

    fn write_soon(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if std::mem::replace(&mut self.memory.0.lock().writing, true) {
            return;
        }
        let (gateway, stopping) = (self.gateway.clone(), self.stopping.clone());
        let write = async move {
            // At shutdown the pending changes are written at once.
            stopping.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
            let Some(gateway) = gateway.upgrade() else { return };
            gateway.search.memory.0.lock().writing = false;
            gateway.search.memory.write(&gateway.registry.store).await;
        };
        self.tasks.spawn_on(write, &runtime);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    fn remark(word: u64) -> Remark {
        let query = format!("q{word}");
        Remark { query, terms: vec![word], model: String::new(), vector: None, text: Some("words".into()) }
    }

    fn memory(pairs: usize) -> Memory {
        let memory = Memory::default();
        memory.limit(MemorySettings { pairs, ..MemorySettings::default() });
        memory
    }

    fn weights(memory: &Memory, project: &str) -> Vec<(String, f32)> {
        let state = memory.0.lock();
        let pairs = state.projects.get(project).into_iter().flat_map(|project| project.pairs.values());
        let mut all: Vec<(String, f32)> = pairs.map(|pair| (pair.query.clone(), pair.weight)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn a_pair_grows_with_use_and_fades_with_time() {
        let (memory, tool) = (memory(100), ToolKey::new("m", "t"));
        memory.strengthen("p", &remark(1), &tool, DAY);
        assert_eq!(weights(&memory, "p"), [("q1".to_owned(), 1.0)]);
        memory.strengthen("p", &remark(1), &tool, 31 * DAY);
        assert_eq!(weights(&memory, "p"), [("q1".to_owned(), 1.5)]);
        for _ in 0..20 {
            memory.strengthen("p", &remark(1), &tool, 31 * DAY);
        }
        assert_eq!(weights(&memory, "p"), [("q1".to_owned(), STRONGEST)]);
        assert!(weights(&memory, "other").is_empty(), "projects keep to themselves");
    }

    #[test]
    fn a_project_and_a_tool_hold_only_so_many() {
        let memory = memory(60);
        for word in 0..80 {
            memory.strengthen("p", &remark(word), &ToolKey::new("m", "busy"), DAY + word);
        }
        assert_eq!(weights(&memory, "p").len(), PER_TOOL);
        for word in 0..40 {
            memory.strengthen("p", &remark(word), &ToolKey::new("m", format!("t{word}").as_str()), 9 * DAY);
        }
        let left = weights(&memory, "p");
        assert_eq!(left.len(), 60, "{left:?}");
        let state = memory.0.lock();
        assert_eq!(state.gone.len(), 30 + 30, "what is let go of leaves the store, too");
        assert!(state.gone.is_disjoint(&state.changed));
    }

    #[test]
    fn what_is_off_remembers_nothing() {
        let memory = Memory::default();
        memory.limit(MemorySettings { enabled: false, ..MemorySettings::default() });
        memory.strengthen("p", &remark(1), &ToolKey::new("m", "t"), DAY);
        assert!(weights(&memory, "p").is_empty());
    }
}

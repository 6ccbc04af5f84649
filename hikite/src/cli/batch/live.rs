//! Live view of a batch on a terminal: one line per running task with its wave and dependencies, finished tasks
//! above, total progress below.

use std::collections::HashMap;
use std::time::Duration;

use hikite_core::plan::{Plan, TaskStatus};
use hikite_gateway::{Observer, TaskCompletion};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(super) struct LiveBatchProgress {
    bars: MultiProgress,
    state: Mutex<LiveBatchState>,
}

#[derive(Debug, Default)]
struct LiveBatchState {
    /// Line of each task while it runs.
    lines: Vec<String>,
    running: HashMap<usize, ProgressBar>,
    all: Option<ProgressBar>,
}

/// Redraw interval of a spinner.
const TICK: Duration = Duration::from_millis(100);
/// Maximum number of dependencies shown.
const DEPENDENCIES_MAX: usize = 4;

impl Observer for LiveBatchProgress {
    fn begins(&self, plan: &Plan) {
        let all = self.bars.add(ProgressBar::new(plan.tasks.len() as u64));
        if let Ok(style) = ProgressStyle::with_template("  {bar:24} {pos}/{len} ({elapsed})") {
            all.set_style(style);
        }
        all.tick();
        let mut state = self.state.lock();
        state.lines = lines(plan);
        state.all = Some(all);
    }

    fn starts(&self, at: usize) {
        let mut state = self.state.lock();
        let bar = match &state.all {
            Some(all) => self.bars.insert_before(all, ProgressBar::new_spinner()),
            None => return,
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(state.lines[at].clone());
        bar.enable_steady_tick(TICK);
        state.running.insert(at, bar);
    }

    fn ends(&self, ending: &TaskCompletion<'_>) {
        let mut state = self.state.lock();
        if let Some(bar) = state.running.remove(&ending.at) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
        // A closed terminal does not stop the batch.
        let _ = self.bars.println(format!("{} {ending}", mark(ending.status)));
        let Some(all) = &state.all else { return };
        all.set_position(ending.done as u64);
        if ending.done == ending.total {
            all.finish_and_clear();
        }
    }
}

fn mark(status: TaskStatus) -> char {
    match status {
        TaskStatus::Ok => '✓',
        TaskStatus::Error | TaskStatus::Timeout => '✗',
        TaskStatus::Skipped | TaskStatus::Cancelled => '-',
    }
}

/// Formats each task as `wave 2  page ← search`.
fn lines(plan: &Plan) -> Vec<String> {
    let mut lines = vec![String::new(); plan.tasks.len()];
    for (number, wave) in plan.waves().iter().enumerate() {
        for at in wave {
            let task = &plan.tasks[*at];
            let others = task.after.iter().take(DEPENDENCIES_MAX).map(|other| &*plan.tasks[*other].id);
            let mut named = others.collect::<Vec<&str>>().join(", ");
            if task.after.len() > DEPENDENCIES_MAX {
                named = format!("{named} and {} more", task.after.len() - DEPENDENCIES_MAX);
            }
            let waited = if named.is_empty() { String::new() } else { format!(" ← {named}") };
            lines[*at] = format!("wave {}  {}{waited}", number + 1, task.id);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use hikite_core::json::Raw;
    use hikite_core::plan::OnError;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_in_which_wave_a_task_is_and_what_it_waited_for() {
        let task = |id: &str, after: &[&str]| json!({ "id": id, "module": "m", "tool": "t", "after": after });
        let tasks = json!([
            task("a", &[]),
            task("b", &[]),
            task("c", &["a", "b"]),
            task("d", &["a", "b", "c"]),
            task("e", &["a", "b", "c", "d"]),
            task("f", &["a", "b", "c", "d", "e"]),
        ]);
        let plan = Plan::read(&Raw::of(&tasks), OnError::Skip, 10).expect("a plan");
        let lines = lines(&plan);
        assert_eq!((&*lines[0], &*lines[2]), ("wave 1  a", "wave 2  c ← a, b"));
        assert_eq!(lines[5], "wave 5  f ← a, b, c, d and 1 more");
    }
}

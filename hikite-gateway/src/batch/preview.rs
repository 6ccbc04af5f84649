//! Dry run of a batch: describes the tasks without running them.

use hikite_core::json::{Object, Raw};
use hikite_core::plan::Plan;

use super::check::CheckedPlan;
use super::report::BatchReport;

/// Estimated bytes of a task besides its params.
const TASK_COST: usize = 256;
/// Estimated bytes per dependency.
const NAME_COST: usize = 64;

/// Estimates the bytes that are read and written.
pub(super) fn cost(checked: &CheckedPlan) -> usize {
    let cost = |(params, after): (usize, usize)| TASK_COST + params + after * NAME_COST;
    checked.plan.tasks.iter().map(|task| cost((task.params.cost(), task.after.len()))).sum()
}

pub(super) fn preview(checked: &CheckedPlan) -> BatchReport {
    let plan = &checked.plan;
    let waves = plan.waves();
    let mut wave_of = vec![0; plan.tasks.len()];
    for (number, wave) in waves.iter().enumerate() {
        for at in wave {
            wave_of[*at] = number;
        }
    }
    let tasks = plan.tasks.iter().zip(&checked.risks).zip(wave_of).map(|((task, risk), wave)| {
        Object::default()
            .with("id", &*task.id)
            .with("tool", task.tool.to_string())
            .with("wave", Raw::of(&wave))
            .with("risk", risk.name())
            .with("params", Raw::of(task.params.as_written().0))
            .with("after", ids(plan, &task.after))
            .raw()
    });
    let tasks: Vec<Raw> = tasks.collect();
    let waves: Vec<Raw> = waves.iter().map(|wave| ids(plan, wave)).collect();
    let document = Object::default().with("waves", Raw::array(&waves)).with("tasks", Raw::array(&tasks));
    BatchReport { document: document.raw(), content: Vec::new(), failed: false, is_over: true }
}

fn ids(plan: &Plan, places: &[usize]) -> Raw {
    Raw::of(&places.iter().map(|at| &*plan.tasks[*at].id).collect::<Vec<&str>>())
}

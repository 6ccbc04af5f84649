//! Dependency graph of a batch over task indexes. Knows nothing about what tasks do.

/// Edges from each task to its dependents, in one flat list.
#[derive(Debug)]
pub(super) struct Dependents {
    /// Start of each task's dependents in `tasks`; one entry more than there are tasks.
    starts: Vec<usize>,
    tasks: Vec<usize>,
}

impl Dependents {
    /// Builds the edges from the dependencies of each task.
    pub(super) fn of<'a>(after: impl Iterator<Item = &'a [usize]> + Clone) -> Self {
        let count = after.clone().count();
        let mut starts = vec![0; count + 1];
        for other in after.clone().flatten() {
            starts[other + 1] += 1;
        }
        for task in 0..count {
            starts[task + 1] += starts[task];
        }
        let mut next = starts.clone();
        let mut tasks = vec![0; starts[count]];
        for (task, others) in after.enumerate() {
            for other in others {
                tasks[next[*other]] = task;
                next[*other] += 1;
            }
        }
        Self { starts, tasks }
    }

    /// Returns the dependents of a task, in task order.
    pub(super) fn get(&self, task: usize) -> &[usize] {
        &self.tasks[self.starts[task]..self.starts[task + 1]]
    }
}

/// Returns the wave of each task: one more than the latest wave among its dependencies. `None` for a task that is part
/// of a dependency cycle or depends on one.
pub(super) fn waves(after: &[&[usize]]) -> Vec<Option<usize>> {
    let dependents = Dependents::of(after.iter().copied());
    let mut waiting: Vec<usize> = after.iter().map(|others| others.len()).collect();
    let mut waves = vec![None; after.len()];
    let mut ready: Vec<usize> = (0..after.len()).filter(|task| waiting[*task] == 0).collect();
    while let Some(task) = ready.pop() {
        let latest = after[task].iter().filter_map(|other| waves[*other]).max();
        waves[task] = Some(latest.map_or(0, |wave: usize| wave + 1));
        for dependent in dependents.get(task) {
            waiting[*dependent] -= 1;
            if waiting[*dependent] == 0 {
                ready.push(*dependent);
            }
        }
    }
    waves
}

/// Returns dependency cycles, each rotated to begin with its lowest task. Finds at least one if there are any, and no
/// two with the same tasks.
pub(super) fn cycles(after: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut marks = vec![VisitState::New; after.len()];
    let mut cycles = Vec::new();
    for start in 0..after.len() {
        // Path from the start to here; each task with the number of its dependencies already visited.
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut next = Some(start).filter(|task| marks[*task] == VisitState::New);
        loop {
            if let Some(task) = next.take() {
                marks[task] = VisitState::OnPath;
                path.push((task, 0));
            }
            let Some((task, visited)) = path.last_mut() else { break };
            let Some(other) = after[*task].get(*visited) else {
                marks[*task] = VisitState::Done;
                path.pop();
                continue;
            };
            *visited += 1;
            match marks[*other] {
                VisitState::New => next = Some(*other),
                VisitState::OnPath if marks[*task] == VisitState::OnPath => {
                    let start_of_cycle = path.iter().rposition(|(task, _)| task == other).unwrap_or_default();
                    let mut cycle: Vec<usize> = path[start_of_cycle..].iter().map(|(task, _)| *task).collect();
                    for task in &cycle {
                        marks[*task] = VisitState::InCycle;
                    }
                    let first = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map(|(place, _)| place);
                    cycle.rotate_left(first.unwrap_or_default());
                    cycles.push(cycle);
                }
                VisitState::OnPath | VisitState::InCycle | VisitState::Done => {}
            }
        }
    }
    cycles
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    OnPath,
    /// On the path, and part of a cycle already found.
    InCycle,
    Done,
}

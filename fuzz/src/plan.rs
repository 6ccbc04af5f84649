//! Batches. No input makes the parser panic, every accepted plan has a schedule that ends, and every rejected one
//! yields a few faults with positions.

use bytes::Bytes;
use hikite_core::check::ArgumentChecker;
use hikite_core::json::Raw;
use hikite_core::plan::{OnError, Plan, ReferenceScope, Schedule, ScheduleStep, TaskStatus};
use serde_json::{Value, json};

const TASKS_MAX: usize = 50;

/// Reads the input as lines of text, and as JSON if it is JSON.
pub fn assert_properties(input: &[u8]) {
    read(&Raw::of(&*String::from_utf8_lossy(input)));
    if let Ok(raw) = Raw::parse(Bytes::copy_from_slice(input)) {
        read(&raw);
    }
}

fn read(commands: &Raw) {
    let plan = match Plan::read(commands, OnError::Skip, TASKS_MAX) {
        Ok(plan) => plan,
        Err(faults) => {
            assert!((1..=21).contains(&faults.len()));
            assert!(faults.iter().all(|fault| fault.pointer.starts_with("/commands")));
            return;
        }
    };
    assert!((1..=TASKS_MAX).contains(&plan.tasks.len()));
    assert_eq!(plan.waves().iter().map(Vec::len).sum::<usize>(), plan.tasks.len());
    for failing in [None, Some(0), plan.tasks.len().checked_sub(1)] {
        ends(&plan, failing);
    }
    fills(&plan);
}

fn ends(plan: &Plan, failing: Option<usize>) {
    let mut schedule = Schedule::new(plan, 3);
    let (mut running, mut ended) = (Vec::new(), vec![false; plan.tasks.len()]);
    loop {
        while let Some(step) = schedule.step() {
            let over = match step {
                ScheduleStep::Run(task) => {
                    running.push(task);
                    continue;
                }
                ScheduleStep::Skip { task, .. } | ScheduleStep::Cancel(task) => task,
            };
            running.retain(|task| *task != over);
            assert!(!std::mem::replace(&mut ended[over], true), "a task ends twice");
        }
        let Some(task) = running.pop() else { break };
        assert!(!std::mem::replace(&mut ended[task], true), "a task ends twice");
        schedule.finish(task, if Some(task) == failing { TaskStatus::Error } else { TaskStatus::Ok });
    }
    assert!(schedule.is_finished() && ended.into_iter().all(|ended| ended), "a task never ends");
}

/// Asserts that references resolve to a value or name what is missing, whatever the results are.
fn fills(plan: &Plan) {
    let result = json!({ "results": [{ "id": "a", "n": 1, "名": ["${search}", null] }], "n": 0, "items": [[1], []] });
    let item = Value::from("x");
    let checker = ArgumentChecker::new(Some(Raw::of(&json!({ "properties": { "page_id": { "type": "integer" } } }))));
    for scope in [
        ReferenceScope { result: &|_| Some(&result), item: Some((&item, 0)) },
        ReferenceScope { result: &|place| Some(&result["results"]).filter(|_| place % 2 == 0), item: Some((&item, 1)) },
    ] {
        for task in &plan.tasks {
            let (written, filled) = task.params.as_written();
            assert!(filled.iter().all(|pointer| written.pointer(pointer).is_some_and(Value::is_string)));
            let known_wrong = checker.check_template(written, &filled).is_err();
            if let Ok(params) = task.params.resolve(&scope) {
                let wrong = checker.check(Some(&Raw::of(&params))).is_err();
                assert!(wrong || !known_wrong || !filled.is_empty(), "refused, and yet it passes");
            }
            let _ = task.for_each.as_ref().map(|list| list.resolve(&scope));
            let _ = task.condition.as_ref().map(|condition| condition.holds(&scope));
        }
    }
}

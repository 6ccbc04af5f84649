//! A batch before it runs and the decisions while it does: reading, the check of all params against a real tool's
//! schema, the waves, and a schedule from the first task to the last. Nothing is called.

use hikite_core::check::ArgumentChecker;
use hikite_core::json::Raw;
use hikite_core::plan::{OnError, Plan, ReferenceScope, Schedule, ScheduleStep, TaskStatus};
use serde_json::{Map, Value, json};

use crate::timer::Timer;

const SIZES: &[usize] = &[10, 100, 1000];
const CONCURRENCY: usize = 16;

pub(crate) fn rows(timer: Timer) -> Vec<Value> {
    let servers: Map<String, Value> =
        serde_json::from_str(include_str!("../../tests/fixtures/tools.json")).expect("valid JSON");
    let checker = ArgumentChecker::new(Some(Raw::of(&servers["github"]["list_issues"])));
    assert_eq!(checker.find_problem(), None);
    SIZES.iter().map(|count| row(timer, *count, &checker)).collect()
}

fn row(timer: Timer, count: usize, checker: &ArgumentChecker) -> Value {
    let commands = Raw::of(&lines(count));
    let read = || Plan::read(&commands, OnError::Skip, count).expect("a right plan");
    let plan = read();
    assert_eq!(run(&plan), count);
    let result = json!({ "results": [{ "id": "abc", "page": 3 }], "owner": { "login": "octocat" } });
    let scope = ReferenceScope { result: &|_| Some(&result), item: None };
    let fill = || plan.tasks.iter().filter(|task| task.params.resolve(&scope).is_ok()).count();
    assert_eq!(fill(), count);
    let whole = || {
        let plan = read();
        check(&plan, checker);
        (plan.waves().len(), run(&plan))
    };
    json!([
        count,
        commands.bytes().len(),
        timer.nanoseconds(read) / 1e3,
        timer.nanoseconds(|| check(&plan, checker)) / 1e3,
        timer.nanoseconds(|| plan.waves()) / 1e3,
        timer.nanoseconds(|| run(&plan)) / 1e3,
        timer.nanoseconds(fill) / 1e3,
        timer.nanoseconds(whole) / 1e3,
    ])
}

/// As a model would write them: three references each to tasks before, one of them inside a text.
fn lines(count: usize) -> String {
    let line = |n: usize| {
        let before = |step: usize| format!("task-{}", n.saturating_sub(step));
        let params = if n == 0 {
            json!({ "owner": "octocat", "repo": "hello-world", "state": "open" })
        } else {
            json!({
                "owner": format!("${{{}.owner.login}}", before(1 + n % 7)), "repo": format!("repo-${{{}.results[0].id}}", before(3)),
                "page": format!("${{{}.results[-1].page?}}", before(40)), "state": "open", "labels": ["bug", "help wanted"],
            })
        };
        json!({ "id": format!("task-{n}"), "module": "github", "tool": "list_issues", "params": params, "output": n.is_multiple_of(10) })
            .to_string()
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

fn check(plan: &Plan, checker: &ArgumentChecker) {
    for task in &plan.tasks {
        let (written, filled) = task.params.as_written();
        assert_eq!(checker.check_template(written, &filled), Ok(()));
    }
}

fn run(plan: &Plan) -> usize {
    let mut schedule = Schedule::new(plan, CONCURRENCY);
    let (mut running, mut ended) = (std::collections::VecDeque::new(), 0);
    loop {
        while let Some(step) = schedule.step() {
            if let ScheduleStep::Run(task) = step {
                running.push_back(task);
            }
        }
        let Some(task) = running.pop_front() else { return ended };
        schedule.finish(task, TaskStatus::Ok);
        ended += 1;
    }
}

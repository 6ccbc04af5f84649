//! Simulated runs of plans: every task ends exactly once and after its dependencies, however the others end.

use proptest::prelude::*;

use super::*;

/// Runs a plan. `pick` chooses the running task that ends next, `end` its status. Returns the status of each task and
/// the task that caused it. Panics if a task ends twice or starts too early, or if too many run.
fn run(
    plan: &Plan,
    concurrency: usize,
    mut pick: impl FnMut(usize) -> usize,
    end: impl Fn(usize) -> TaskStatus,
) -> Vec<(TaskStatus, Option<usize>)> {
    let mut schedule = Schedule::new(plan, concurrency);
    let mut ends: Vec<Option<(TaskStatus, Option<usize>)>> = vec![None; plan.tasks.len()];
    let mut running: Vec<usize> = Vec::new();
    loop {
        let mut last = None;
        while let Some(step) = schedule.step() {
            match step {
                ScheduleStep::Run(task) => {
                    assert!(ends[task].is_none() && !running.contains(&task), "{task} runs twice");
                    for other in &plan.tasks[task].after {
                        let (status, _) = ends[*other].expect("what is waited for has ended");
                        assert!(status == TaskStatus::Ok || plan.tasks[*other].on_error == OnError::Continue);
                    }
                    assert!(last < Some(task), "ready tasks run in their order");
                    last = Some(task);
                    running.push(task);
                }
                ScheduleStep::Skip { task, cause } => {
                    assert!(!running.contains(&task), "{task} was skipped while it ran");
                    assert_eq!(ends[task].replace((TaskStatus::Skipped, Some(cause))), None, "{task} ends twice");
                }
                ScheduleStep::Cancel(task) => {
                    running.retain(|other| *other != task);
                    assert_eq!(ends[task].replace((TaskStatus::Cancelled, None)), None, "{task} ends twice");
                }
            }
            assert!(running.len() <= concurrency.max(1), "too many run");
        }
        if running.is_empty() {
            break;
        }
        assert!(!schedule.is_finished());
        let task = running.remove(pick(running.len()));
        assert_eq!(ends[task].replace((end(task), None)), None, "{task} ends twice");
        schedule.finish(task, end(task));
    }
    assert!(schedule.is_finished());
    ends.into_iter().map(|end| end.expect("every task ends")).collect()
}

/// Generates tasks that depend on earlier ones.
fn tasks(count: usize) -> impl Strategy<Value = Vec<Value>> {
    let task = (proptest::collection::vec(any::<prop::sample::Index>(), 0..4), 0..8_usize);
    proptest::collection::vec(task, 1..=count).prop_map(|tasks| {
        let task = |(place, (after, on_error)): (usize, (Vec<prop::sample::Index>, usize))| {
            let others: Vec<String> =
                after.iter().filter(|_| place > 0).map(|other| format!("t{}", other.index(place))).collect();
            let (referred, after) = others.split_at(others.len() / 2);
            let references: Vec<String> = referred.iter().map(|other| format!("${{{other}.x?}}")).collect();
            let on_error = OnError::ALL.get(on_error).map_or("skip", |(word, _)| word);
            super::task(
                &format!("t{place}"),
                json!({ "after": after, "params": { "v": references }, "on_error": on_error }),
            )
        };
        tasks.into_iter().enumerate().map(task).collect()
    })
}

fn turned(tasks: Vec<Value>, seed: usize) -> Vec<Value> {
    let mut tasks = tasks;
    let length = tasks.len();
    for place in 0..length {
        tasks.swap(place, (place.wrapping_mul(7919).wrapping_add(seed)) % length);
    }
    tasks
}

/// Checks the status of each task against those of its dependencies.
fn explained(plan: &Plan, ends: &[(TaskStatus, Option<usize>)], own: impl Fn(usize) -> TaskStatus) {
    for (task, (status, cause)) in ends.iter().enumerate() {
        let blocked = plan.tasks[task]
            .after
            .iter()
            .any(|other| ends[*other].0 != TaskStatus::Ok && plan.tasks[*other].on_error != OnError::Continue);
        match (status, cause) {
            (TaskStatus::Skipped, Some(cause)) => {
                assert!(blocked);
                assert!(ends[*cause].0 != TaskStatus::Ok && ends[*cause].1.is_none(), "the cause failed by itself");
            }
            (TaskStatus::Cancelled, None) if own(task) != TaskStatus::Cancelled => {
                let failed = |other: usize| {
                    matches!(own(other), TaskStatus::Error | TaskStatus::Timeout | TaskStatus::Cancelled)
                        && plan.tasks[other].on_error == OnError::FailFast
                };
                assert!((0..ends.len()).any(failed), "{task} was cancelled for nothing");
            }
            (status, None) => assert!(*status == own(task) && !blocked || *status == TaskStatus::Cancelled),
            other => panic!("{task} ended as {other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_plan_ends_however_its_tasks_do(
        tasks in tasks(1000),
        seed in any::<usize>(),
        concurrency in 0..40_usize,
        statuses in proptest::collection::vec(0..20_usize, 16),
        picks in proptest::collection::vec(any::<usize>(), 16),
    ) {
        let plan = plan(&json!(turned(tasks, seed)));
        let end = |task: usize| *TaskStatus::ALL.get(statuses[task % 16]).unwrap_or(&TaskStatus::Ok);
        let run_once = || {
            let mut turn = picks.iter().cycle();
            run(&plan, concurrency, |running| turn.next().map_or(0, |pick| pick % running), end)
        };
        let ends = run_once();
        explained(&plan, &ends, end);
        prop_assert_eq!(&ends, &run_once(), "the same again");
        if plan.tasks.iter().all(|task| task.on_error != OnError::FailFast) {
            let other = run(&plan, 1, |_| 0, end);
            let statuses = |ends: &[(TaskStatus, Option<usize>)]| ends.iter().map(|end| end.0).collect::<Vec<_>>();
            prop_assert_eq!(statuses(&ends), statuses(&other), "the order does not matter");
        }
    }

    #[test]
    fn waves_hold_every_task_after_what_it_waits_for(tasks in tasks(300), seed in any::<usize>()) {
        let plan = plan(&json!(turned(tasks, seed)));
        let mut wave_of = vec![usize::MAX; plan.tasks.len()];
        for (number, wave) in plan.waves().iter().enumerate() {
            prop_assert!(!wave.is_empty() && wave.is_sorted());
            for task in wave {
                prop_assert_eq!(std::mem::replace(&mut wave_of[*task], number), usize::MAX, "in two waves");
            }
        }
        for (task, number) in wave_of.iter().enumerate() {
            let latest = plan.tasks[task].after.iter().map(|other| wave_of[*other]).max();
            prop_assert_eq!(*number, latest.map_or(0, |latest| latest + 1), "no wave later than it must be");
        }
    }

    #[test]
    fn a_circle_anywhere_is_found(tasks in tasks(60), seed in any::<usize>(), length in 1..10_usize) {
        let mut tasks = tasks;
        for n in 0..length {
            tasks.push(super::task(&format!("c{n}"), json!({ "after": ["t0", format!("c{}", (n + 1) % length)] })));
        }
        let faults = read(&json!(turned(tasks, seed))).expect_err("a circle");
        prop_assert_eq!(faults.len(), 1);
        let named = faults[0].1.split(": ").nth(1).expect("a list");
        let named: Vec<&str> = named.split(" → ").collect();
        prop_assert_eq!(named.len(), length + 1);
        prop_assert_eq!(named.first(), named.last());
        for pair in named.windows(2) {
            let number = |name: &str| name[1..].parse::<usize>().expect("a number");
            prop_assert_eq!((number(pair[0]) + 1) % length, number(pair[1]));
        }
    }
}

#[test]
fn one_failure_in_any_place_skips_what_waits_for_it_and_nothing_else() {
    let tasks: Vec<Value> = (0..40)
        .map(|n: usize| {
            let after: Vec<String> =
                [n / 2, n / 3].iter().filter(|m| **m < n && !n.is_multiple_of(5)).map(|m| format!("t{m}")).collect();
            task(&format!("t{n}"), json!({ "after": after }))
        })
        .collect();
    let plan = plan(&json!(tasks));
    for failed in 0..40 {
        for concurrency in [1, 3, 100] {
            let end = |task| if task == failed { TaskStatus::Timeout } else { TaskStatus::Ok };
            let ends = run(&plan, concurrency, |_| 0, end);
            let mut reached = [false; 40];
            for task in 0..40 {
                reached[task] = plan.tasks[task].after.iter().any(|other| *other == failed || reached[*other]);
                let expected = if reached[task] { (TaskStatus::Skipped, Some(failed)) } else { (end(task), None) };
                assert_eq!(ends[task], expected, "{task} when {failed} fails");
            }
        }
    }
}

/// Checks the outcome, written as `id status` or `id status cause`.
#[track_caller]
fn check(tasks: &[(&str, &str, &str, TaskStatus)], expected: &str) {
    let list: Vec<Value> = tasks
        .iter()
        .map(|(id, after, on_error, _)| {
            let after: Vec<&str> = after.split(' ').filter(|id| !id.is_empty()).collect();
            task(id, json!({ "after": after, "on_error": on_error }))
        })
        .collect();
    let plan = plan(&json!(list));
    let ends = run(&plan, 2, |_| 0, |task| tasks[task].3);
    let told: Vec<String> = ends
        .iter()
        .zip(tasks)
        .map(|((status, cause), (id, ..))| {
            let cause = cause.map(|cause| format!(" {}", tasks[cause].0)).unwrap_or_default();
            format!("{id} {}{cause}", status.name())
        })
        .collect();
    assert_eq!(told.join(", "), expected);
}

#[test]
fn what_a_failure_means_is_for_the_failed_task_to_say() {
    use TaskStatus::{Error, Ok, Skipped};
    let (skip, go_on, stop) = ("skip", "continue", "fail_fast");
    check(
        &[("a", "", skip, Error), ("b", "a", skip, Ok), ("c", "b", skip, Ok), ("d", "", skip, Ok)],
        "a error, b skipped a, c skipped a, d ok",
    );
    check(&[("a", "", go_on, Error), ("b", "a", skip, Ok), ("c", "b", skip, Ok)], "a error, b ok, c ok");
    check(
        &[("a", "", stop, Error), ("b", "", skip, Ok), ("c", "", skip, Ok), ("d", "a", skip, Ok)],
        "a error, b cancelled, c cancelled, d cancelled",
    );
    check(
        &[("a", "", skip, Ok), ("b", "a", stop, Error), ("c", "", skip, Ok), ("d", "c", skip, Ok)],
        "a ok, b error, c ok, d cancelled",
    );
    // Dependents of a skipped task with `on_error: continue` still run.
    check(
        &[("a", "", skip, Error), ("b", "a", go_on, Ok), ("c", "b", skip, Ok), ("d", "a b", skip, Ok)],
        "a error, b skipped a, c ok, d skipped a",
    );
    // A task whose `if` does not hold is skipped.
    check(&[("a", "", skip, Skipped), ("b", "a", skip, Ok)], "a skipped, b skipped a");
    check(&[("a", "", go_on, Skipped), ("b", "a", skip, Ok)], "a skipped, b ok");
    check(&[("a", "", stop, Skipped), ("b", "a", skip, Ok), ("c", "", skip, Ok)], "a skipped, b skipped a, c ok");
    // A skipped task with `fail_fast` cancels nothing.
    check(&[("a", "", skip, Error), ("b", "a", stop, Ok), ("c", "", skip, Ok)], "a error, b skipped a, c ok");
}

#[test]
fn the_cause_is_the_first_that_failed_on_the_way() {
    use TaskStatus::{Error, Ok};
    check(
        &[("a", "", "skip", Ok), ("b", "a", "skip", Error), ("c", "b", "skip", Ok), ("d", "c a", "skip", Ok)],
        "a ok, b error, c skipped b, d skipped b",
    );
    check(
        &[("a", "", "skip", Error), ("b", "", "skip", Error), ("c", "b a", "skip", Ok)],
        "a error, b error, c skipped a",
    );
}

#[test]
fn what_is_told_too_late_or_of_nobody_is_left_alone() {
    let plan = plan(&json!([task("a", json!({ "on_error": "fail_fast" })), task("b", json!({}))]));
    let mut schedule = Schedule::new(&plan, 2);
    schedule.finish(1, TaskStatus::Error);
    schedule.finish(7, TaskStatus::Error);
    assert_eq!((schedule.step(), schedule.step()), (Some(ScheduleStep::Run(0)), Some(ScheduleStep::Run(1))));
    schedule.finish(0, TaskStatus::Error);
    schedule.finish(1, TaskStatus::Ok);
    schedule.finish(0, TaskStatus::Ok);
    assert_eq!((schedule.step(), schedule.step()), (Some(ScheduleStep::Cancel(1)), None));
    assert!(schedule.is_finished());
}

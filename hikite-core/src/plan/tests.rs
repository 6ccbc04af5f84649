//! Tests of plans: parsing, references and scheduling.

mod condition;
mod fault;
mod field;
mod reference;
mod schedule;

use serde_json::{Value, json};

use super::*;
use crate::json::Raw;

const TASKS_MAX: usize = 1000;

fn read(commands: &Value) -> Result<Plan, Vec<(String, String)>> {
    let faults = Plan::read(&Raw::of(commands), OnError::Skip, TASKS_MAX);
    faults.map_err(|faults| faults.into_iter().map(|fault| (fault.pointer, fault.message)).collect())
}

#[track_caller]
fn plan(commands: &Value) -> Plan {
    read(commands).expect("a right plan")
}

#[track_caller]
fn refused(commands: &Value, expected: &[(&str, &str)]) {
    let faults = read(commands).expect_err("refused");
    let faults: Vec<(&str, &str)> =
        faults.iter().map(|(pointer, message)| (pointer.as_str(), message.as_str())).collect();
    assert_eq!(faults, expected);
}

/// Returns a task with the given further fields.
fn task(id: &str, others: Value) -> Value {
    let mut task = json!({ "id": id, "module": "m", "tool": "t" });
    let (Value::Object(all), Value::Object(others)) = (&mut task, others) else { panic!("objects") };
    all.extend(others);
    task
}

fn of(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
}

/// Tasks with results, and a last task that can reference them.
struct PlanFixture {
    results: Vec<(&'static str, Value)>,
}

impl PlanFixture {
    fn plan(&self, last: Value) -> Result<Plan, Vec<(String, String)>> {
        let mut tasks: Vec<Value> = self.results.iter().map(|(id, _)| task(id, json!({}))).collect();
        tasks.push(task("last", last));
        read(&json!(tasks))
    }

    #[track_caller]
    fn last(&self, last: Value) -> Task {
        self.plan(last).expect("a right plan").tasks.pop().expect("the last task")
    }

    #[track_caller]
    fn params(&self, params: Value) -> Result<Value, UnresolvedReference> {
        let last = self.last(of("params", params));
        last.params.resolve(&ReferenceScope { result: &|place| self.result(place), item: None })
    }

    #[track_caller]
    fn condition(&self, text: &str) -> Result<bool, UnresolvedReference> {
        let last = self.last(json!({ "if": text }));
        last.condition.expect("a condition").holds(&ReferenceScope { result: &|place| self.result(place), item: None })
    }

    /// Returns the result of a task; an empty string stands for no result.
    fn result(&self, place: usize) -> Option<&Value> {
        self.results.get(place).map(|(_, result)| result).filter(|result| result.as_str() != Some(""))
    }
}

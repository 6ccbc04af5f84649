//! Tasks in both forms, of 2025-11-25 and the extension of 2026-07-28, for clients and servers with sessions and
//! without; and skills, which are relayed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hikite_testkit::fixture::{Era, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, SessionClient, StatelessClient, StatelessEnvelope};
use serde_json::{Value, json};

use crate::bridge::{ERAS, gateways, person, upstream};
use crate::{fixture, gateway};

/// A task must be found where it was begun, and its questions asked there.
const OWN: &str = "never";

fn patient() -> StatelessEnvelope {
    StatelessEnvelope::capable().with_tasks()
}

async fn begin(client: &StatelessClient, tool: &str, arguments: Value) -> Value {
    let task = client.call(tool, arguments).await.result();
    assert_eq!(task["resultType"], "task", "{task}");
    assert!(task.get("task").is_none() && task.get("ttl").is_none(), "{task}");
    task
}

/// Polls until the task has this status.
async fn until(client: &StatelessClient, id: &Value, status: &str) -> Value {
    let begin = Instant::now();
    loop {
        let task = client.request("tasks/get", json!({ "taskId": id })).await.result();
        if task["status"] == status {
            return task;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{task}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_client_without_a_session_follows_tasks_of_any_server() {
    for (label, gateway, _fixture) in gateways(OWN).await {
        let client = gateway.stateless("direct", patient());
        let task = begin(&client, "slow_compute", json!({ "seconds": 0.3, "label": "x" })).await;
        let done = until(&client, &task["taskId"], "completed").await;
        assert!(done["result"]["content"][0]["text"].as_str().is_some(), "{label}: {done}");
        assert_eq!(done["taskId"], task["taskId"], "{label}");

        let task = begin(&client, "failing_job", json!({})).await;
        let done = until(&client, &task["taskId"], "completed").await;
        assert_eq!(done["result"]["isError"], true, "{label}: {done}");

        let task = begin(&client, "protocol_error_job", json!({})).await;
        let done = until(&client, &task["taskId"], "failed").await;
        assert!(done["error"]["code"].is_i64(), "{label}: {done}");

        let task = begin(&client, "slow_compute", json!({ "seconds": 60, "label": "x" })).await;
        client.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await.result();
        until(&client, &task["taskId"], "cancelled").await;
        client.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await.result();
    }
}

#[tokio::test]
async fn a_task_that_needs_something_says_what() {
    for (label, gateway, _fixture) in gateways(OWN).await {
        let client = gateway.stateless("direct", patient());
        let task = begin(&client, "multi_input", json!({})).await;
        // They may arrive one by one; each is answered once.
        let mut answered = HashSet::new();
        while answered.len() < 2 {
            let waiting = until(&client, &task["taskId"], "input_required").await;
            for key in waiting["inputRequests"].as_object().expect("questions").keys() {
                assert!(answered.insert(key.clone()), "{label}: {waiting}");
                let answer = json!({ "action": "accept", "content": { "confirm": true } });
                let given = json!({ key: answer, "nobody": {} });
                let params = json!({ "taskId": task["taskId"], "inputResponses": given });
                client.request("tasks/update", params).await.result();
            }
        }
        let done = until(&client, &task["taskId"], "completed").await;
        assert!(done["result"]["content"][0]["text"].as_str().expect("text").contains("accept"), "{label}");
    }
}

#[tokio::test]
async fn a_task_is_nobody_elses() {
    let (_fixture, server) = upstream(Era::Modern).await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.stateless("direct", patient());
    let task = begin(&client, "slow_compute", json!({ "seconds": 1, "label": "x" })).await;
    let id = task["taskId"].as_str().expect("an id");
    for unknown in [&id[1..], &format!("{id}x"), "1", ""] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": unknown, "inputResponses": {} });
            assert_eq!(client.request(method, params).await.code(), -32602, "{method} {unknown}");
        }
    }
    let session = gateway.client("direct").await;
    assert_eq!(session.request("tasks/get", json!({ "taskId": "1" })).await.expect_err("none")["code"], -32602);
    assert_eq!(session.request("tasks/list", json!({})).await.expect_err("none")["code"], -32601);
}

async fn begin_in_session(client: &SessionClient, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
    let created = client.request("tools/call", params).await.expect("a task");
    assert!(created.get("resultType").is_none(), "{created}");
    created["task"].clone()
}

#[tokio::test]
async fn a_client_with_a_session_follows_tasks_of_any_server() {
    for (label, gateway, _fixture) in gateways(OWN).await {
        let client = gateway.client_with("direct", person()).await;
        let call = &client.welcome()["capabilities"]["tasks"]["requests"]["tools"]["call"];
        assert_eq!(call, &json!({}), "{label}");
        let task = begin_in_session(&client, "slow_compute", json!({ "seconds": 0.3, "label": "x" })).await;
        let about = json!({ "taskId": task["taskId"] });
        let seen = client.request("tasks/get", about.clone()).await.expect("a task");
        assert!(seen.get("ttl").is_some() && seen.get("ttlMs").is_none(), "{label}: {seen}");
        let result = client.request("tasks/result", about.clone()).await.expect("a result");
        assert!(result["content"].is_array(), "{label}: {result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task["taskId"], "{label}");
        let late = client.request("tasks/cancel", about).await.expect_err("it is over");
        assert_eq!(late["code"], -32602, "{label}");

        let task = begin_in_session(&client, "protocol_error_job", json!({})).await;
        client.request("tasks/result", json!({ "taskId": task["taskId"] })).await.expect_err("it failed");

        let task = begin_in_session(&client, "slow_compute", json!({ "seconds": 60, "label": "x" })).await;
        let ended = client.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await.expect("cancelled");
        assert_eq!(ended["status"], "cancelled", "{label}: {ended}");

        let task = begin_in_session(&client, "confirm_delete", json!({ "filename": "f" })).await;
        let result = client.request("tasks/result", json!({ "taskId": task["taskId"] })).await.expect("a result");
        assert!(result["content"][0]["text"].as_str().expect("text").contains("f was"), "{label}: {result}");
        assert!(!client.questions().is_empty(), "{label}");
    }
}

#[tokio::test]
async fn a_client_that_knows_no_tasks_gets_the_result_of_one() {
    for (label, gateway, _fixture) in gateways(OWN).await {
        let result = gateway.client("direct").await.call("failing_job", json!({})).await;
        assert_eq!(result["isError"], true, "{label}: {result}");
        let alone =
            gateway.stateless("direct", StatelessEnvelope::default()).call("failing_job", json!({})).await.result();
        assert_eq!((&alone["isError"], &alone["resultType"]), (&json!(true), &json!("complete")), "{label}");
    }
}

#[tokio::test]
async fn skills_are_relayed_to_clients_of_either_kind() {
    for era in ERAS {
        let options = FixtureOptions { era, extended: true, skills: true, ..FixtureOptions::default() };
        let (_fixture, server) = fixture(FixtureTransport::Http, options).await;
        let gateway = gateway(json!({ "a": server })).await;
        let alone = gateway.stateless("direct", StatelessEnvelope::default());
        let skills = alone.request("skills/list", json!({})).await.result();
        assert!(skills["ttlMs"].is_u64(), "{skills}");
        let uri = skills["skills"][0]["uri"].as_str().expect("a skill").to_owned();
        let client = gateway.client_with("direct", ClientOptions::default()).await;
        let listed = client.request("skills/list", json!({})).await.expect("skills");
        assert_eq!(listed["skills"], skills["skills"]);
        let extension = "io.modelcontextprotocol/skills";
        assert!(client.welcome()["capabilities"]["extensions"].get(extension).is_some());
        let found = alone.request("server/discover", json!({})).await.result();
        assert!(found["capabilities"]["extensions"].get(extension).is_some());
        let about = json!({ "uri": uri });
        let one = client.request("skills/get", about.clone()).await.expect("a skill");
        let same = alone.request("skills/get", about.clone()).await.result();
        assert_eq!(one["skill"], same["skill"], "{one}");
        for file in skills["skills"][0]["resources"].as_array().expect("files") {
            let read = client.request("resources/read", json!({ "uri": file["uri"] })).await.expect("a file");
            assert!(read["contents"][0]["text"].is_string(), "{read}");
        }
        let folder = uri.strip_suffix("/SKILL.md").expect("a folder");
        let children = alone.request("resources/directory/read", json!({ "uri": folder })).await.result();
        assert!(children["resources"].is_array(), "{children}");
        assert_eq!(alone.request("skills/get", json!({ "uri": "skill://no/SKILL.md" })).await.code(), -32602);
    }
}

/// A server with sessions that restarts its task numbers in each process.
const COUNTING: &str = r#"
import json, sys
tasks = {}
def told(id):
    return {"taskId": id, "status": tasks[id][1], "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000, "pollInterval": 100}
for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message["method"], message.get("params", {}), message.get("id")
    answer = {"jsonrpc": "2.0", "id": id}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "job", "inputSchema": {"type": "object"},
            "execution": {"taskSupport": "optional"}}, {"name": "end", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call" and params["name"] == "end":
        sys.exit(0)
    elif method == "tools/call":
        task = "task-%d" % (len(tasks) + 1)
        tasks[task] = [params["arguments"]["who"], "working"]
        answer["result"] = {"task": told(task)}
    elif method == "tasks/get" and params["taskId"] in tasks:
        answer["result"] = told(params["taskId"])
        tasks[params["taskId"]][1] = "completed"
    elif method == "tasks/result" and params["taskId"] in tasks:
        answer["result"] = {"content": [{"type": "text", "text": "of " + tasks[params["taskId"]][0]}]}
    elif method.startswith("tasks/"):
        answer["error"] = {"code": -32602, "message": "no such task"}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if id is not None:
        print(json.dumps(answer), flush=True)
"#;

fn counting() -> Value {
    json!({ "description": "d", "command": "python3", "args": ["-c", COUNTING], "share": "never" })
}

#[tokio::test]
async fn tasks_of_the_same_name_in_two_processes_are_told_apart() {
    let gateway = gateway(json!({ "a": counting() })).await;
    let (ada, bob) = (gateway.client("direct").await, gateway.client("direct").await);
    let mut tasks = Vec::new();
    for (client, who) in [(&ada, "ada"), (&bob, "bob")] {
        tasks.push((client, who, begin_in_session(client, "job", json!({ "who": who })).await));
    }
    assert_ne!(tasks[0].2["taskId"], tasks[1].2["taskId"]);
    for (client, who, task) in &tasks {
        let result = client.request("tasks/result", json!({ "taskId": task["taskId"] })).await;
        assert_eq!(result.expect("a result")["content"][0]["text"], format!("of {who}"));
    }
    // A task is lost with its process, even if the next one has a task of the same name.
    ada.call("end", json!({})).await;
    begin_in_session(&ada, "job", json!({ "who": "another" })).await;
    let about = json!({ "taskId": tasks[0].2["taskId"] });
    assert_eq!(ada.request("tasks/get", about).await.expect_err("gone")["code"], -32602);
}

#[tokio::test]
async fn a_process_with_a_task_that_runs_is_not_idle() {
    let limits = json!({ "idle_stop": "200ms" });
    let gateway = crate::configured(json!({ "mcpServers": { "a": counting() }, "limits": limits })).await;
    let client = gateway.client("direct").await;
    let task = begin_in_session(&client, "job", json!({ "who": "ada" })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let result = client.request("tasks/result", json!({ "taskId": task["taskId"] })).await;
    assert_eq!(result.expect("a result")["content"][0]["text"], "of ada");
    assert!(gateway.has_no_descendants().await, "it is over and still runs");
}

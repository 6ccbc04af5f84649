//! No response is lost, duplicated or misdelivered: many clients with equal request ids, and random conversations
//! compared with a model of the expected responses.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_testkit::fixture::Era;
use hikite_testkit::gateway::{ClientOptions, PendingCall, SessionClient, StatelessEnvelope, TestGateway};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use crate::bridge::upstream;
use crate::{configured, stdio, with};

const CLIENTS: usize = 64;
const CALLS: usize = 10_000;

/// Starts servers of both kinds of revisions, over HTTP and stdio; `share` applies to the stdio server that asks
/// questions.
async fn mixed(share: &str) -> (Vec<hikite_testkit::fixture::Fixture>, TestGateway) {
    let (old, old_server) = upstream(Era::Legacy).await;
    let (new, new_server) = upstream(Era::Modern).await;
    let servers = json!({ "a": old_server, "b": new_server,
        "c": with(stdio(&["--extended"]), "share", share), "d": stdio(&["--era", "modern"]) });
    (vec![old, new], configured(json!({ "mcpServers": servers })).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_with_the_same_ids_get_their_own_answers() {
    let (_fixtures, gateway) = mixed("auto").await;
    let gateway = Arc::new(gateway);
    let clients = (0..CLIENTS).map(|number| {
        let gateway = Arc::clone(&gateway);
        async move {
            // Every client counts its requests from one; every second one has no session.
            let session = if number % 2 == 0 { Some(gateway.client("direct").await) } else { None };
            let alone = gateway.stateless("direct", StatelessEnvelope::default());
            for call in 0..=CALLS / CLIENTS {
                let module = ["a", "b", "c", "d"][(number + call) % 4];
                let marker = format!("{number}/{call}");
                let (tool, arguments) = (format!("{module}__echo_marker"), json!({ "marker": marker }));
                let told = match &session {
                    Some(client) => client.text(&tool, arguments).await,
                    None => alone.text(&tool, arguments).await,
                };
                assert_eq!(told, marker);
            }
        }
    });
    futures_util::future::join_all(clients).await;
}

/// One step of a conversation.
#[derive(Clone, Debug)]
enum ConversationStep {
    /// Calls a tool that returns its marker after a delay in milliseconds.
    Echo { module: usize, delay: u64 },
    /// Calls a tool that asks questions and returns the answers.
    Ask { module: usize, questions: usize },
    /// Cancels the oldest call.
    Cancel,
    /// Sends a ping.
    Ping,
    /// Sends an unsolicited response.
    Stray,
    /// Waits for the oldest call.
    Await,
}

fn step() -> impl Strategy<Value = ConversationStep> {
    prop_oneof![
        4 => (0..4_usize, 0..30_u64).prop_map(|(module, delay)| ConversationStep::Echo { module, delay }),
        2 => (0..4_usize, 1..4_usize).prop_map(|(module, questions)| ConversationStep::Ask { module, questions }),
        1 => Just(ConversationStep::Cancel),
        1 => Just(ConversationStep::Ping),
        1 => Just(ConversationStep::Stray),
        2 => Just(ConversationStep::Await),
    ]
}

/// Expected outcome of a call.
struct ExpectedCall {
    marker: String,
    questions: usize,
    pending: PendingCall,
}

fn tool(module: usize, name: &str) -> String {
    format!("{}__{name}", ["a", "b", "c", "d"][module])
}

impl ExpectedCall {
    async fn check(self) -> Result<(), TestCaseError> {
        let result = self.pending.answer().await.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if self.questions == 0 {
            prop_assert_eq!(text, self.marker);
            return Ok(());
        }
        let answers: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
        prop_assert_eq!(answers.len(), self.questions, "{}", text);
        for (number, answer) in (1..).zip(answers) {
            let own = format!("me:{} q{number}", self.marker);
            prop_assert_eq!(&answer["content"]["answer"], &json!(own));
        }
        Ok(())
    }
}

async fn hold(client: &SessionClient, steps: &[ConversationStep], seed: u64) -> Result<(), TestCaseError> {
    let mut open: Vec<ExpectedCall> = Vec::new();
    let mut cancelled: HashMap<u64, PendingCall> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        let marker = format!("{seed}.{number}");
        match step {
            ConversationStep::Echo { module, delay } => {
                let arguments = json!({ "marker": marker, "delay_ms": delay });
                let pending = client.begin_call(&tool(*module, "echo_marker"), arguments);
                open.push(ExpectedCall { marker, questions: 0, pending });
            }
            ConversationStep::Ask { module, questions } => {
                let arguments = json!({ "questions": questions, "marker": marker });
                let pending = client.begin_call(&tool(*module, "ask_many"), arguments);
                open.push(ExpectedCall { marker, questions: *questions, pending });
            }
            ConversationStep::Cancel if !open.is_empty() => {
                let given_up = open.remove(0).pending;
                client.cancel(given_up.id).await;
                cancelled.insert(given_up.id, given_up);
            }
            ConversationStep::Ping => {
                let pong = client.request("ping", json!({})).await;
                prop_assert_eq!(pong, Ok(json!({})));
            }
            ConversationStep::Stray => {
                let nobody = hikite_testkit::gateway::ServerRequest {
                    id: json!(999_999),
                    method: "roots/list".into(),
                    params: json!({}),
                };
                client.answer(&nobody, json!({ "roots": [] })).await;
            }
            ConversationStep::Await if !open.is_empty() => open.remove(0).check().await?,
            ConversationStep::Cancel | ConversationStep::Await => {}
        }
    }
    for expected in open {
        expected.check().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_conversation_loses_doubles_or_misdirects_an_answer() {
    let (_fixtures, gateway) = mixed("never").await;
    let handle = tokio::runtime::Handle::current();
    let held = tokio::task::spawn_blocking(move || {
        let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
        let conversations = (prop::collection::vec(prop::collection::vec(step(), 1..20), 1..4), any::<u64>());
        runner.run(&conversations, |(conversations, seed)| {
            handle.block_on(async {
                let gateway = &gateway;
                let held = conversations.iter().zip(seed % 1000..).map(|(steps, seed)| async move {
                    let client = gateway.client_with("direct", ClientOptions::answering("me")).await;
                    let held = hold(&client, steps, seed).await;
                    client.delete().await;
                    held
                });
                futures_util::future::try_join_all(held).await.map(drop)
            })
        })
    });
    held.await.expect("no panic").expect("every answer in its place");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_calls_of_a_session_are_answered_though_they_come_at_once() {
    // A session's first calls find out together that the server has no sessions, and that they share a connection.
    for _ in 0..8 {
        let (_fixture, server) = upstream(Era::Modern).await;
        let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
        let client = gateway.client_with("direct", ClientOptions::answering("me")).await;
        let calls = (0..16).map(|number| client.begin_call("echo_marker", json!({ "marker": number.to_string() })));
        let calls: Vec<_> = calls.collect();
        for (number, call) in calls.into_iter().enumerate() {
            let answer = call.answer().await.expect("an answer");
            assert_eq!(answer["content"][0]["text"], number.to_string(), "{answer}");
        }
    }
}

//! Remote servers added at run time, and the import of other clients' configs.

use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use super::{deeds, delete, refuses_outsiders, send, shared, until};
use crate::rest::{get, post, refused};
use crate::{configured, http_fixture, stdio};

const CANARY: &str = "canary-5e1d";

/// Returns a config that allows stored servers on this machine.
fn config(servers: &Value) -> Value {
    json!({ "mcpServers": servers, "server": { "surface": "direct" }, "egress": { "allow": ["127.0.0.0/8"] } })
}

fn echo(module: &str) -> Value {
    json!({ "name": format!("{module}:echo"), "parameters": { "text": "x" } })
}

async fn calls(gateway: &TestGateway, module: &str) -> u16 {
    post(gateway, "/v1/tools/call", &echo(module)).await.status
}

#[tokio::test]
async fn a_remote_server_is_there_at_once_everywhere_and_after_a_restart() {
    let (_fixture, remote) = http_fixture().await;
    let (_folder, config) = shared(config(&json!({})));
    let gateway = configured(config.clone()).await;
    let other = configured(config.clone()).await;
    let entry = json!({ "url": remote["url"], "description": "documents", "headers": { "X-Key": CANARY } });
    let made = send(&gateway, "PUT", "/v1/upstreams/docs", &entry).await;
    assert_eq!(
        (made.status, &made.headers["location"]),
        (201, &"/v1/upstreams/docs".parse().expect("text")),
        "{}",
        made.text()
    );
    assert_eq!(made.value()["entry"]["headers"]["X-Key"], "***");
    assert_eq!(calls(&gateway, "docs").await, 200);
    until("the other process has it", async || calls(&other, "docs").await == 200).await;
    let module = get(&gateway, "/v1/modules/docs").await.value();
    assert_eq!(
        (&module["managedBy"], &module["kind"], &module["description"]),
        (&json!("store"), &json!("http"), &json!("documents"))
    );
    let changed = json!({ "url": remote["url"], "description": "papers", "headers": { "X-Key": "***" } });
    let changed = send(&gateway, "PUT", "/v1/upstreams/docs", &changed).await;
    assert_eq!((changed.status, &changed.value()["entry"]["description"]), (200, &json!("papers")));
    for path in ["/v1/upstreams", "/v1/upstreams/docs", "/v1/modules/docs"] {
        assert!(!get(&gateway, path).await.text().contains(CANARY), "{path}");
    }
    let gateway = gateway.restart(config).await;
    assert_eq!(calls(&gateway, "docs").await, 200);
    assert!(!gateway.stderr().contains(CANARY));
    assert_eq!(delete(&gateway, "/v1/upstreams/docs").await.status, 204);
    assert_eq!(calls(&gateway, "docs").await, 404);
    until("the other process lets it go", async || calls(&other, "docs").await == 404).await;
    let gone = delete(&gateway, "/v1/upstreams/docs").await;
    refused(&gone, 404, "NOT_FOUND", "there is no upstream `docs` in the store");
    let deeds = deeds(&gateway, 4).await;
    assert_eq!(
        deeds,
        ["upstream.delete docs NOT_FOUND", "upstream.delete docs ok", "upstream.put docs ok", "upstream.put docs ok"]
    );
}

#[tokio::test]
async fn programs_names_of_the_file_and_wrong_entries_are_refused() {
    let gateway = configured(config(&json!({ "a": stdio(&[]) }))).await;
    let put = async |name: &str, entry: Value| send(&gateway, "PUT", &format!("/v1/upstreams/{name}"), &entry).await;
    let program = put("sh", json!({ "command": "sh", "args": ["-c", "it's"] })).await;
    let refusal =
        refused(&program, 403, "AUTHORIZATION_ERROR", "a server that is a program is never set up over the network");
    let hint = refusal["hint"].as_str().expect("a hint");
    assert!(hint.contains("hikite config import /dev/stdin --write") && hint.contains(r"it'\''s"), "{hint}");
    let taken = put("a", json!({ "url": "https://x.example/mcp" })).await;
    refused(&taken, 409, "CONFLICT", "The module `a` is managed by the config file.");
    let taken = delete(&gateway, "/v1/upstreams/a").await;
    refused(&taken, 409, "CONFLICT", "The module `a` is managed by the config file.");
    for (name, entry) in [
        ("x", json!({ "url": "ftp://x.example" })),
        ("x", json!({ "url": "https://x.example", "headers": { "A": "${HOME}" } })),
        ("x", json!({ "url": "https://x.example", "nope": 1 })),
        ("a:b", json!({ "url": "https://x.example" })),
        ("x", json!({})),
    ] {
        let reply = put(name, entry.clone()).await;
        assert_eq!(
            (reply.status, &reply.value()["code"]),
            (400, &json!("VALIDATION_ERROR")),
            "{entry}: {}",
            reply.text()
        );
        assert!(!reply.text().contains(&std::env::var("HOME").expect("a home")), "{}", reply.text());
    }
    let listed = get(&gateway, "/v1/upstreams").await.value();
    assert_eq!(listed["upstreams"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(
        (&listed["upstreams"][0]["managedBy"], &listed["upstreams"][0]["kind"]),
        (&json!("file"), &json!("stdio"))
    );
    refuses_outsiders(
        &gateway,
        &[
            ("GET", "/v1/upstreams"),
            ("GET", "/v1/upstreams/a"),
            ("PUT", "/v1/upstreams/x"),
            ("DELETE", "/v1/upstreams/x"),
            ("POST", "/v1/upstreams/import"),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_address_inside_is_not_reached_unless_the_owner_allows_it() {
    let (fixture, remote) = http_fixture().await;
    let gateway = configured(json!({ "server": { "surface": "direct" } })).await;
    let entry = json!({ "url": remote["url"], "description": "d" });
    assert_eq!(send(&gateway, "PUT", "/v1/upstreams/docs", &entry).await.status, 201);
    assert_ne!(calls(&gateway, "docs").await, 200);
    let failing = async || get(&gateway, "/v1/modules/docs").await.value()["state"] == "failing";
    until("it fails", failing).await;
    assert!(fixture.url().contains("127.0.0.1"));
}

#[tokio::test]
async fn the_config_of_a_client_is_shown_as_a_diff_and_applied() {
    let (_fixture, remote) = http_fixture().await;
    let gateway = configured(config(&json!({ "a": stdio(&[]) }))).await;
    let theirs = format!(
        "{{ // theirs\n \"mcpServers\": {{ \"a\": {{ \"command\": \"x\" }}, \"fs\": {{ \"command\": \"npx\", \"args\": [\"-y\", \"fs\"] }},\
         \"docs\": {{ \"url\": {}, \"headers\": {{ \"K\": \"{CANARY}\" }} }}, \"bad\": {{ \"url\": \"https://x/${{TOKEN}}\" }} }} }}",
        remote["url"]
    );
    let import =
        async |apply: bool| post(&gateway, "/v1/upstreams/import", &json!({ "config": theirs, "apply": apply })).await;
    let actions = |answer: &Value| -> Vec<String> {
        let entries = answer["entries"].as_array().expect("entries").iter();
        entries
            .map(|entry| {
                ["name", "kind", "action"].map(|word| entry[word].as_str().unwrap_or("?").to_owned()).join(" ")
            })
            .collect()
    };
    let preview = import(false).await;
    assert!(!preview.text().contains(CANARY), "{}", preview.text());
    let preview = preview.value();
    assert_eq!(actions(&preview), ["a stdio file", "fs stdio refused", "docs http add", "bad http refused"]);
    assert_eq!(preview["applied"], json!([]));
    let command = preview["entries"][1]["command"].as_str().expect("a command");
    assert!(command.contains("hikite config import /dev/stdin --write"), "{command}");
    assert_eq!(calls(&gateway, "docs").await, 404);
    assert_eq!(import(true).await.value()["applied"], json!(["docs"]));
    assert_eq!(calls(&gateway, "docs").await, 200);
    assert_eq!(actions(&import(false).await.value())[2], "docs http same");
    let wrong = post(&gateway, "/v1/upstreams/import", &json!({ "config": "{" })).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
}

//! Server messages are relayed byte for byte.

use std::collections::HashMap;
use std::path::PathBuf;

use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, SessionClient};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::{configured, fixture, gateway, http_fixture, stdio, with};

/// A recorded server. Lists it does not offer are empty.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedLists {
    #[serde(skip)]
    module: String,
    #[serde(deserialize_with = "list")]
    tools: Vec<Box<RawValue>>,
    #[serde(deserialize_with = "list")]
    prompts: Vec<Box<RawValue>>,
    #[serde(deserialize_with = "list")]
    resources: Vec<Box<RawValue>>,
    #[serde(deserialize_with = "list")]
    resource_templates: Vec<Box<RawValue>>,
}

fn list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl RecordedLists {
    fn of(&self, member: &str) -> &[Box<RawValue>] {
        match member {
            "tools" => &self.tools,
            "prompts" => &self.prompts,
            "resources" => &self.resources,
            _ => &self.resource_templates,
        }
    }
}

fn recorded() -> Vec<(PathBuf, RecordedLists)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite-testkit/fixtures/toolsets");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the recordings").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a recording");
        let mut file: RecordedLists =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path.file_stem().and_then(|stem| stem.to_str()).expect("a name").clone_into(&mut file.module);
        (path, file)
    };
    paths.into_iter().map(read).collect()
}

fn field(raw: &RawValue, name: &str) -> String {
    let value: Value = serde_json::from_str(raw.get()).expect("JSON");
    value[name].as_str().expect("a name").to_owned()
}

/// Returns what the `direct` surface must show of all modules: name and text of each entry.
fn expected(all: &[(PathBuf, RecordedLists)], member: &str) -> Vec<(String, Box<RawValue>)> {
    let key = match member {
        "tools" | "prompts" => "name",
        "resources" => "uri",
        _ => "uriTemplate",
    };
    let entries: Vec<(&str, String, &RawValue)> = all
        .iter()
        .flat_map(|(_, file)| file.of(member).iter().map(|raw| (file.module.as_str(), field(raw, key), &**raw)))
        .collect();
    if key != "name" {
        let mut seen = std::collections::HashSet::new();
        let first = entries.into_iter().filter(|(_, name, _)| seen.insert(name.clone()));
        return first.map(|(_, name, raw)| (name, raw.to_owned())).collect();
    }
    let mut holders: HashMap<&str, std::collections::HashSet<&str>> = HashMap::new();
    for (module, name, _) in &entries {
        holders.entry(name).or_default().insert(module);
    }
    let shown = |module: &str, name: &str| {
        if holders[name].len() > 1 { format!("{module}__{name}") } else { name.to_owned() }
    };
    entries.iter().map(|(module, name, raw)| (shown(module, name), (*raw).to_owned())).collect()
}

async fn items(client: &SessionClient, method: &str, member: &str) -> Vec<Box<RawValue>> {
    let result = client.raw_result(method, json!({})).await;
    let mut members: HashMap<String, Box<RawValue>> = serde_json::from_str(&result).expect("JSON");
    assert!(!members.contains_key("nextCursor"));
    serde_json::from_str(members.remove(member).expect("the list").get()).expect("an array")
}

#[tokio::test]
async fn every_recorded_list_comes_out_as_it_went_in() {
    let all = recorded();
    assert_eq!((all.len(), all.iter().map(|(_, file)| file.tools.len()).sum::<usize>()), (29, 590));
    let (mut fixtures, mut servers, mut categories): (Vec<Fixture>, _, _) = (Vec::new(), Map::new(), Map::new());
    for (path, file) in &all {
        let options = FixtureOptions { replay: Some(path.clone()), ..FixtureOptions::default() };
        let (fixture, server) = fixture(FixtureTransport::Http, options).await;
        fixtures.push(fixture);
        servers.insert(file.module.clone(), server);
        categories.insert(file.module.clone(), json!({ "description": "d", "server": file.module }));
    }
    let gateway = configured(json!({ "mcpServers": servers, "categories": categories })).await;
    let client = gateway.client("direct,categories").await;
    for (method, member, key) in [
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ] {
        let mut shown = items(&client, method, member).await;
        if member == "tools" {
            shown.drain(..2);
        }
        let expected = expected(&all, member);
        assert_eq!(shown.len(), expected.len(), "{method}");
        for (shown, (name, sent)) in shown.iter().zip(expected) {
            if name == field(&sent, key) && name.len() <= 64 {
                assert_eq!(shown.get(), sent.get(), "{method} {name}");
                continue;
            }
            let mut value: Value = serde_json::from_str(sent.get()).expect("JSON");
            value[key] = json!(name);
            assert_eq!(serde_json::from_str::<Value>(shown.get()).expect("JSON"), value, "{method} {name}");
        }
    }
    // A category shows every tool under its own name, so all bytes are preserved.
    for (_, file) in &all {
        let arguments = json!({ "name": "get-category-tools", "arguments": { "category": file.module } });
        let result = client.raw_result("tools/call", arguments).await;
        let result: HashMap<String, Box<RawValue>> = serde_json::from_str(&result).expect("JSON");
        let document: HashMap<String, Box<RawValue>> =
            serde_json::from_str(result["structuredContent"].get()).expect("JSON");
        let tools: HashMap<String, Box<RawValue>> = serde_json::from_str(document["tools"].get()).expect("JSON");
        assert_eq!(tools.len(), file.tools.len(), "{}", file.module);
        for sent in &file.tools {
            assert_eq!(tools[&field(sent, "name")].get(), sent.get(), "{}", file.module);
        }
    }
    // It can also be called: the replay returns its arguments.
    for (_, file) in &all {
        let definitions = file.tools.iter().map(|tool| serde_json::from_str(tool.get()).expect("JSON"));
        let needs = |tool: &Value| tool["inputSchema"]["required"].as_array().map_or(0, Vec::len);
        let definition: Value = definitions.min_by_key(needs).expect("a tool");
        let tool = definition["name"].as_str().expect("a name").to_owned();
        let arguments = sample(&definition["inputSchema"], &definition["inputSchema"]);
        let result = client.call_in(&file.module, &tool, arguments.clone()).await;
        let text = result["content"][0]["text"].as_str().expect("text");
        let said: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{}: {text}", file.module));
        assert_eq!(said["tool"], tool, "{}", file.module);
        // Defaults may have been added; the arguments sent are unchanged.
        for (name, value) in arguments.as_object().expect("an object") {
            assert_eq!(&said["arguments"][name], value, "{}: {name}", file.module);
        }
    }
}

#[tokio::test]
async fn recorded_lists_survive_stdio_and_the_cache() {
    let all: Vec<_> =
        recorded().into_iter().filter(|(_, file)| ["everything", "github"].contains(&file.module.as_str())).collect();
    let servers: Map<String, Value> = all
        .iter()
        .map(|(path, file)| (file.module.clone(), stdio(&["--page", "5", "--replay", path.to_str().expect("UTF-8")])))
        .collect();
    let config = json!({ "mcpServers": servers });
    let mut gateway = configured(config.clone()).await;
    for _ in 0..2 {
        let shown = items(&gateway.client("direct").await, "tools/list", "tools").await;
        let sent = all.iter().flat_map(|(_, file)| &file.tools);
        assert!(shown.iter().map(|raw| raw.get()).eq(sent.map(|raw| raw.get())));
        gateway = gateway.restart(config.clone()).await;
    }
}

/// Runs the check over every upstream transport and every downstream one.
async fn everywhere(check: impl AsyncFn(SessionClient, &str)) {
    let (_http, web) = http_fixture().await;
    let (_sse, old) = fixture(FixtureTransport::Sse, FixtureOptions::default()).await;
    let servers = json!({ "web": web, "old": old, "program": stdio(&[]) });
    let gateway = gateway(servers.clone()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "mcpServers": servers, "server": { "surface": "direct" } });
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    for module in ["web", "old", "program"] {
        check(gateway.client("direct").await, module).await;
        let client = SessionClient::over_stdio(&crate::PROGRAMS, folder.path(), &[], ClientOptions::default()).await;
        check(client.clone(), module).await;
        assert!(client.close().await.success());
    }
}

#[tokio::test]
async fn a_rich_result_keeps_every_byte() {
    const RICH: &str = r#"{"x-first":{"z":1,"a":2},"content":[{"type":"text","text":"{\"value\":1.50}","annotations":{"audience":["user"],"priority":0.9,"x-note":"kept"},"_meta":{"vendor.example/item":1}},{"type":"resource_link","uri":"test://static-text","name":"static-text","x-vendor":"kept"}],"structuredContent":{"value":1.50,"nested":{"big":12345678901234567890123,"exponent":1e3,"accent":"caf\u00e9","empty":{}}},"isError":false,"_meta":{"vendor.example/nested":{"deep":[null,true,{"er":0}]}},"x-last":[]}"#;
    everywhere(async |client, module| {
        let params = json!({ "name": format!("{module}__rich"), "arguments": {} });
        assert_eq!(client.raw_result("tools/call", params).await, RICH, "{module}");
        let params = json!({ "name": format!("{module}__structured"), "arguments": { "a": 1, "b": 2.5 } });
        let sum = r#"{"content":[{"type":"text","text":"{\"sum\":3.5}"}],"structuredContent":{"sum":3.5}}"#;
        assert_eq!(client.raw_result("tools/call", params).await, sum, "{module}");
    })
    .await;
}

#[tokio::test]
async fn what_the_client_sends_reaches_the_server_as_it_was_written() {
    everywhere(async |client, module| {
        let params = json!({
            "name": format!("{module}__mirror"), "x-first": [1, 2],
            "arguments": { "z": "caf\u{e9}", "a": { "n": 1e300, "list": [null, true, {}] } },
            "_meta": { "vendor.example/trace": { "id": "t" }, "progressToken": "mine" },
        });
        let seen = client.request("tools/call", params.clone()).await.expect("a result");
        let seen: Value = serde_json::from_str(seen["content"][0]["text"].as_str().expect("text")).expect("JSON");
        let mut expected = params;
        expected["name"] = json!("mirror");
        expected["_meta"]["progressToken"] = seen["_meta"]["progressToken"].clone();
        assert_eq!(seen, expected, "{module}");
        assert_ne!(seen["_meta"]["progressToken"], "mine", "the token is ours on that side");
    })
    .await;
}

#[tokio::test]
async fn big_numbers_and_odd_texts_in_arguments_keep_their_bytes() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let arguments = r#"{"big":12345678901234567890123,"exact":1.50,"escape":"\u00e9\/","order":{"z":1,"a":2}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"an id","method":"tools/call","params":{{"name":"mirror","arguments":{arguments}}}}}"#
    );
    let request = gateway.request("POST", "/mcp?surface=direct").json(body).header("mcp-session-id", &client.session());
    let reply = gateway.send(request).await;
    let answer = reply.value();
    assert_eq!(answer["id"], "an id");
    let seen = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert!(seen.contains(&format!(r#""arguments":{arguments}"#)), "{seen}");
}

#[tokio::test]
async fn an_error_of_the_server_is_relayed_as_it_came() {
    everywhere(async |client, module| {
        let params = json!({ "name": format!("{module}__structured"), "arguments": { "a": 1e9, "b": 1 } });
        let error = client.request("tools/call", params).await.expect_err("an error");
        assert_eq!(error, json!({ "code": -32602, "message": "`a` is too large" }), "{module}");
    })
    .await;
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let error = client.request("resources/read", json!({ "uri": "test://template/a/b/data" })).await.expect_err("none");
    assert_eq!(error["code"], -32002);
    assert_eq!(error["data"], json!({ "uri": "test://template/a/b/data" }), "the server's own");
}

#[tokio::test]
async fn a_stream_that_broke_is_taken_up_again() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let text = client.text("test_reconnection", json!({})).await;
    assert_eq!(text, "The answer came after the stream had been closed.");
}

#[tokio::test]
async fn old_and_new_servers_and_every_form_of_answer_work() {
    use hikite_testkit::fixture::PostResponseFormat;
    let mut servers = Map::new();
    let mut fixtures = Vec::new();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for (word, answer) in
            [("sse", PostResponseFormat::Sse), ("json", PostResponseFormat::Json), ("mixed", PostResponseFormat::Mixed)]
        {
            let options = FixtureOptions {
                answer,
                revision_max: revision.parse().expect("a revision"),
                ..FixtureOptions::default()
            };
            let (fixture, server) = fixture(FixtureTransport::Http, options).await;
            fixtures.push(fixture);
            servers.insert(format!("{word}-{revision}"), with(server, "share", "always"));
        }
    }
    let names: Vec<String> = servers.keys().cloned().collect();
    let gateway = gateway(Value::Object(servers)).await;
    let client = gateway.client("direct").await;
    for name in names {
        let who = client.call(&format!("{name}__who"), json!({})).await;
        assert!(name.ends_with(who["structuredContent"]["revision"].as_str().expect("a revision")), "{name}: {who}");
    }
}

/// Returns a minimal value for a schema of the recorded lists.
fn sample(root: &Value, schema: &Value) -> Value {
    let first = |name: &str| schema[name].as_array().and_then(|list| list.first());
    if let Some(target) = schema["$ref"].as_str().and_then(|at| root.pointer(at.trim_start_matches('#'))) {
        return sample(root, target);
    }
    if let Some(one) = first("anyOf").or(first("oneOf")).or(first("allOf")) {
        return sample(root, one);
    }
    if let Some(value) = first("enum").or(schema.get("const")).or(schema.get("default")) {
        return value.clone();
    }
    match schema["type"].as_str().or(schema["type"][0].as_str()) {
        Some("string") => json!("https://example.com/a-text-that-is-long-enough"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => match schema["minItems"].as_u64() {
            Some(1..) => json!([sample(root, &schema["items"])]),
            _ => json!([]),
        },
        _ => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let members = required.map(|name| (name.to_owned(), sample(root, &schema["properties"][name])));
            Value::Object(members.collect())
        }
    }
}

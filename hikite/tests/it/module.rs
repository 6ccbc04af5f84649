//! Services described in module files: listed, checked, created and imported in a terminal, and reloaded at run time.

use std::path::Path;

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::{CommandOutput, TestGateway};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{PROGRAMS, configured, http_fixture};

const SHOP: &str = r#"
module: shop
title: Shop
description: { en: A shop, ja: 店 }
base: https://shop.example
tools:
  list_things:
    risk: read
    description: { en: Things of the shop, ja: 店の品 }
    request: { GET: /things }
    out: { table: things, rows: ".[]", columns: { name: .name } }
"#;

struct ModuleFolder(TempDir);

impl ModuleFolder {
    fn open(config: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
        std::fs::create_dir(folder.path().join("modules")).expect("a folder");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).expect("a file")
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        PROGRAMS.run(self.0.path(), arguments).await
    }

    /// Returns the output with folder names replaced.
    async fn seen(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments).await;
        let folder = std::fs::canonicalize(self.0.path()).expect("a folder").display().to_string();
        let text = format!("code: {}\n{}---\n{}", run.code.unwrap_or(-1), run.stdout, run.stderr);
        text.replace(&folder, "DIR").replace(&self.0.path().display().to_string(), "DIR")
    }
}

fn config() -> Value {
    json!({
        "modules": { "builtin": ["notion", "github", "jira"], "dir": "modules" },
        "providers": { "notion": { "token": "secret-of-notion" }, "shopp": { "token": "x" } },
        "mcpServers": { "jira": { "command": "/no/such/program", "description": "another" } },
        "search": { "provider": "bm25" },
    })
}

#[tokio::test]
async fn modules_are_listed_with_what_is_wrong_with_them() {
    let terminal = ModuleFolder::open(&config());
    terminal.write("modules/shop.yaml", SHOP);
    terminal.write("modules/github.yaml", &SHOP.replace("module: shop", "module: github"));
    terminal.write("modules/wrong.yaml", &SHOP.replace("risk: read", "risk: none").replace("/things", "things"));
    insta::assert_snapshot!("modules_for_people", terminal.seen(&["module", "list"]).await);
    insta::assert_snapshot!("tools_for_people", terminal.seen(&["module", "list", "notion"]).await);
    let run = terminal.run(&["module", "list", "--json"]).await;
    assert!(!run.stdout.contains("secret-of-notion"));
    let listed: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let states: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|module| module["state"].as_str()).collect();
    assert_eq!(states[0], "connected");
    assert_eq!(states[1..], ["hidden by github.yaml", "hidden by mcpServers.jira", "ready", "ready", "wrong"]);
    assert_eq!(listed[0]["risks"], json!({ "read": 9, "write": 5, "destructive": 1 }));
    assert_eq!(listed[5]["faults"][0]["at"], "tools.list_things.risk");
    let run = terminal.run(&["module", "list", "notoin"]).await;
    assert_eq!(run.stderr, "error: There is no module `notoin`.\nhint: Did you mean `notion`?\n");
    let run = terminal.run(&["doctor", "--wait", "120"]).await;
    assert!(run.stdout.contains("error   module: "), "{}", run.stdout);
    assert!(run.stdout.contains("wrong.yaml: tools.list_things.risk: expected one of"), "{}", run.stdout);
    let unused = "warning provider shopp: no module uses this account";
    assert!(run.stdout.contains(unused), "{}", run.stdout);
    assert!(run.stdout.contains("ok      module notion: 15 tools"), "{}", run.stdout);
}

#[tokio::test]
async fn all_faults_of_a_file_are_told_and_fail() {
    let terminal = ModuleFolder::open(&json!({}));
    terminal.write("right.yaml", SHOP);
    let wrong = SHOP
        .replace("GET: /things", r#"GET: "things/{nothing}""#)
        .replace("columns: { name: .name }", r#"columns: { name: ".name | nope" }"#)
        + "  add:\n    risk: write\n    description: Adds\n    params: { a: wrong }\n    request: { POST: /a, body: '=$a | upcase' }\n";
    terminal.write("wrong.yaml", &wrong);
    terminal.write("form.yaml", "module: Shop\ntools: []\nsurprise: 1\n");
    terminal.write("broken.yaml", "module: [\n");
    let files = ["module", "check", "right.yaml", "wrong.yaml", "form.yaml", "broken.yaml", "nowhere.yaml"];
    insta::assert_snapshot!("faults_for_people", terminal.seen(&files).await);
    let run = terminal.run(&["module", "check", "--json", "right.yaml", "form.yaml"]).await;
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.code, &told[0]["ok"], &told[1]["ok"]), (Some(1), &json!(true), &json!(false)));
    assert_eq!(told[0]["tools"], json!({ "read": 1, "write": 0, "destructive": 0 }));
    terminal.write("lazy.yaml", &SHOP.replace("    out: ", "    params: { q: string }\n    # out: "));
    insta::assert_snapshot!("warnings_for_people", terminal.seen(&["module", "check", "lazy.yaml"]).await);
}

#[tokio::test]
async fn what_one_begins_with_works_and_is_not_written_over() {
    let terminal = ModuleFolder::open(&json!({}));
    insta::assert_snapshot!("new_for_people", terminal.seen(&["module", "new", "forge", "--dir", "modules"]).await);
    let text = terminal.read("modules/forge.yaml");
    terminal.write("modules/forge.yaml", "mine");
    let run = terminal.run(&["module", "new", "forge", "--dir", "modules"]).await;
    assert_eq!((run.code, terminal.read("modules/forge.yaml").as_str()), (Some(1), "mine"));
    assert!(run.stderr.starts_with("error: `modules/forge.yaml` already exists.\nhint: "), "{}", run.stderr);
    assert_eq!(terminal.run(&["module", "new", "Bad-Name"]).await.code, Some(2));

    let api = MockApi::start().await;
    let issues: Vec<Value> = (1..=3).map(|number| json!({ "number": number, "title": format!("Issue {number}"), "state": "open", "labels": [{ "name": "bug" }], "user": { "login": "ada" } })).collect();
    api.answer("/api/v1/repos/o/r/issues", MockResponse::json(&json!(issues)));
    let settings = json!({
        "modules": { "builtin": false, "dir": "modules" },
        "providers": { "forge": { "token": "t", "api": api.url("") } },
        "search": { "provider": "bm25" },
    });
    let terminal = ModuleFolder::open(&settings);
    terminal.write("modules/forge.yaml", &text);
    let run = terminal.run(&["call", "forge:list_issues", "-p", "owner=o", "-p", "repo=r"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("Issue 3") && run.stdout.contains("ada"), "{}", run.stdout);
    let seen = api.seen();
    assert_eq!(
        (seen[0].path.as_str(), seen[0].query.as_str()),
        ("/api/v1/repos/o/r/issues", "type=issues&state=open&limit=20")
    );
    assert_eq!(seen[0].headers["authorization"], "Bearer t");
}

#[tokio::test]
async fn chosen_operations_of_a_description_become_a_module() {
    let terminal = ModuleFolder::open(&json!({}));
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite-modules/src/openapi/tests/library.yaml");
    terminal.write("library.yaml", &std::fs::read_to_string(library).expect("a description"));
    let import = ["module", "import-openapi", "library.yaml"];
    insta::assert_snapshot!("operations_for_people", terminal.seen(&import).await);
    let with = |more: &[&'static str]| [&import[..], more].concat();
    insta::assert_snapshot!(
        "imported",
        terminal.seen(&with(&["--operations", "getBook,books/list-all", "--name", "books"])).await
    );
    let run = terminal.run(&with(&["--tag", "books", "--max", "2"])).await;
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("error: 7 operations are selected; the limit is 2.\nhint: "), "{}", run.stderr);
    let written = terminal.seen(&with(&["--path", "/", "--out", "made.yaml"])).await;
    assert!(written.starts_with("code: 0\nmade.yaml: 8 tools\n---\n"), "{written}");
    let run = terminal.run(&["module", "check", "made.yaml"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let again = terminal.run(&with(&["--path", "/", "--out", "made.yaml"])).await;
    assert!(again.code == Some(1) && again.stderr.contains("already exists"), "{}", again.stderr);
    let listed = terminal.run(&with(&["--tag", "loans", "--json"])).await;
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!((&listed[0]["id"], &listed[0]["name"]), (&json!("listLoans"), &json!("list_loans")));
}

/// Returns the tool names of a module, as shown to a client.
async fn tools(gateway: &TestGateway, module: &str) -> Vec<String> {
    let client = gateway.client("modules").await;
    let list = client.request("tools/list", json!({})).await.expect("a list");
    let opened = client.call("get_module_schema", json!({ "modules": [module], "detail": "names" })).await;
    assert!(list["tools"].is_array());
    let text = opened["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map(str::to_owned).collect()
}

async fn shows(gateway: &TestGateway, module: &str, tool: &str) -> bool {
    for _ in 0..50 {
        if tools(gateway, module).await.iter().any(|name| name == tool) {
            return true;
        }
        tokio::time::sleep(hikite_testkit::gateway::SETTLE_TIME).await;
    }
    false
}

fn place(gateway: &TestGateway, name: &str) -> std::path::PathBuf {
    let folder = gateway.folder().path().join("modules");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.join(name)
}

/// Writes a file like an editor: to a temporary file, then renamed.
fn put(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("a file");
    std::fs::rename(&beside, path).expect("a file");
}

#[tokio::test]
async fn files_are_followed_while_hikite_runs() {
    let gateway = configured(json!({ "modules": { "builtin": false, "dir": "modules" } })).await;
    let file = place(&gateway, "shop.yaml");
    put(&file, SHOP);
    assert!(shows(&gateway, "shop", "list_things").await, "{}", gateway.stderr());
    put(&file, &SHOP.replace("list_things", "list_goods"));
    assert!(shows(&gateway, "shop", "list_goods").await, "{}", gateway.stderr());
    put(&file, &SHOP.replace("risk: read", "risk: none"));
    gateway.wait_for_stderr("a module file is invalid, the previous version stays active").await;
    gateway.wait_for_stderr("shop.yaml: tools.list_things.risk: expected one of").await;
    assert!(shows(&gateway, "shop", "list_goods").await, "{}", gateway.stderr());
    std::fs::remove_file(&file).expect("it was there");
    for _ in 0..50 {
        if !tools(&gateway, "shop").await.contains(&"list_goods".to_owned()) {
            return;
        }
        tokio::time::sleep(hikite_testkit::gateway::SETTLE_TIME).await;
    }
    panic!("the module is still there: {}", gateway.stderr());
}

#[tokio::test]
async fn a_file_stands_in_for_a_built_in_and_a_server_for_both() {
    let (_fixture, server) = http_fixture().await;
    let modules = json!({ "builtin": ["github", "notion"], "dir": "modules" });
    let gateway = configured(json!({ "modules": modules })).await;
    put(&place(&gateway, "mine.yaml"), &SHOP.replace("module: shop", "module: github"));
    assert!(shows(&gateway, "github", "list_things").await, "{}", gateway.stderr());
    assert!(!tools(&gateway, "github").await.contains(&"list_repos".to_owned()));
    gateway.write_config(&json!({ "modules": modules, "mcpServers": { "github": server } }));
    assert!(shows(&gateway, "github", "echo").await, "{}", gateway.stderr());
    assert!(!tools(&gateway, "github").await.contains(&"list_things".to_owned()));
}

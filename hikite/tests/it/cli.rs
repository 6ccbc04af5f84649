//! The command line: data to stdout, everything else to stderr, and meaningful exit codes.

use hikite_testkit::fixture::Fixture;
use hikite_testkit::gateway::CommandOutput;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{PROGRAMS, configured, http_fixture, stdio, with};

struct CliFolder {
    folder: TempDir,
    _fixture: Fixture,
}

impl CliFolder {
    /// Starts a small server beside one that is down, and a category with an unknown name.
    async fn open() -> Self {
        let (fixture, up) = http_fixture().await;
        let few = json!({ "includeNames": ["echo", "structured", "test_error_handling", "who", "ask", "sleep"], "overrides": { "who": { "enabled": false } } });
        let down = json!({ "description": "down", "command": "/no/such/program" });
        let categories =
            json!({ "c": { "description": "d", "server": "up", "tools": { "includeNames": ["echo", "nowhere"] } } });
        let config = json!({ "mcpServers": { "up": with(up, "tools", few), "down": down }, "categories": categories, "server": { "listen": "127.0.0.1:0" }, "modules": { "builtin": false }, "search": { "provider": "bm25" } });
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
        Self { folder, _fixture: fixture }
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        PROGRAMS.run(self.folder.path(), arguments).await
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(arguments).await;
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stdout))
    }
}

#[tokio::test]
async fn tools_are_listed_for_people_and_for_programs() {
    let terminal = CliFolder::open().await;
    let run = terminal.run(&["tools", "list", "--module", "up"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    insta::assert_snapshot!(run.stdout);
    let all = terminal.run(&["tools", "list", "--all"]).await;
    assert!(all.stdout.contains("up:who                                (off) "), "{}", all.stdout);
    assert!(all.stdout.ends_with("33 tools\n"));
    let listed = terminal.json(&["tools", "list", "--json"]).await;
    let first = json!({ "key": "up:test_error_handling", "name": "test_error_handling", "module": "up", "enabled": true, "description": listed[0]["description"] });
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]), (Some(5), &first));
}

#[tokio::test]
async fn tools_are_found_by_words() {
    let terminal = CliFolder::open().await;
    let run = terminal.run(&["tools", "search", "structured", "sum"]).await;
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.starts_with("up:structured  Returns a sum"), "{}", run.stdout);
    let found = terminal.json(&["tools", "search", "sum", "--limit", "1", "--json"]).await;
    assert_eq!((&found[0]["key"], found.as_array().map(Vec::len)), (&json!("up:structured"), Some(1)));
    assert!(found[0]["relevance"].as_f64().is_some_and(|relevance| (0.0..=1.0).contains(&relevance)), "{found}");
    assert_eq!(terminal.run(&["tools", "search", "weather"]).await.stdout, "0 tools\n");
}

#[tokio::test]
async fn a_tool_is_described() {
    let terminal = CliFolder::open().await;
    let described = terminal.json(&["tools", "describe", "up:echo", "--json"]).await;
    assert_eq!((&described["name"], &described["inputSchema"]["required"]), (&json!("echo"), &json!(["text"])));
    let run = terminal.run(&["tools", "describe", "echo"]).await;
    assert!(run.stdout.starts_with("up:echo\n{\n  \"name\": \"echo\","), "{}", run.stdout);
    for (tool, said) in [("ecko", "There is no tool `ecko`."), ("who", "The tool `who` is disabled.")] {
        let run = terminal.run(&["tools", "describe", tool]).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains(&format!("error: {said}")), "{}", run.stderr);
    }
}

#[tokio::test]
async fn a_tool_is_called_and_its_failure_is_the_exit_code() {
    let terminal = CliFolder::open().await;
    let run = terminal.run(&["tools", "call", "echo", r#"{"text":"from a terminal"}"#]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "from a terminal\n"), "{}", run.stderr);
    let run = terminal.run(&["tools", "call", "up:structured", "--param", "a=1", "--param", "b=2.5", "--json"]).await;
    assert_eq!(
        run.stdout,
        "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"sum\\\":3.5}\"}],\"structuredContent\":{\"sum\":3.5}}\n"
    );
    let run = terminal.run(&["tools", "call", "test_error_handling"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "This tool intentionally returns an error for testing\n"));
    for (arguments, said) in [
        (&["tools", "call", "nothing"][..], "There is no tool `nothing`."),
        (&["tools", "call", "who"], "The tool `who` is disabled."),
        (&["tools", "call", "structured"], "Required parameter missing: a"),
        (&["tools", "call", "structured", r#"{"a":1e9,"b":1}"#], "`a` is too large"),
        (&["tools", "call", "echo", "not json"], "`not json` is not a JSON object"),
        (&["tools", "call", "echo", "--param", "text"], "`text` is not NAME=VALUE"),
    ] {
        let run = terminal.run(arguments).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    let run = terminal.run(&["tools", "call", "ask", r#"{"kind":"sampling","marker":"m"}"#]).await;
    assert_eq!(run.code, Some(1), "a terminal cannot be asked: {}", run.stdout);
}

#[tokio::test]
async fn a_call_takes_its_arguments_one_by_one_or_as_json() {
    let terminal = CliFolder::open().await;
    let run = terminal.run(&["call", "up:echo", "--param", "text=from a terminal"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "from a terminal\n"), "{}", run.stderr);
    let run = terminal.run(&["call", "structured", "--json", r#"{"a": 1, "b": 1}"#, "-p", "b=2.5", "--raw"]).await;
    assert!(run.stdout.ends_with("\"structuredContent\":{\"sum\":3.5}}\n"), "{}", run.stdout);
    assert_eq!(terminal.run(&["call", "test_error_handling"]).await.code, Some(1));
    for (arguments, said) in [
        (&["call", "nothing"][..], "There is no tool `nothing`."),
        (&["call", "echo", "--json", "[1]"], "`[1]` is not a JSON object"),
        (&["call", "echo", "--json", "-"], "`` is not a JSON object"),
        (&["call", "echo", "--param", "text"], "`text` is not NAME=VALUE"),
    ] {
        let run = terminal.run(arguments).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
}

#[tokio::test]
async fn a_program_started_for_one_command_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), json!({ "mcpServers": { "a": stdio(&[]) } }).to_string())
        .expect("a file");
    let run = PROGRAMS.run(folder.path(), &["tools", "call", "spawn_grandchild"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(hikite_testkit::gateway::marked(folder.path()), []);
}

#[tokio::test]
async fn the_doctor_says_what_is_well_and_what_to_do_about_the_rest() {
    let terminal = CliFolder::open().await;
    let run = terminal.run(&["doctor", "--wait", "120"]).await;
    assert_eq!(run.code, Some(1));
    let folder = terminal.folder.path().display().to_string();
    insta::assert_snapshot!(run.stdout.replace(&folder, "DIR"));
    let findings = run_json(&terminal.run(&["doctor", "--json", "--wait", "120"]).await);
    let levels: Vec<&str> =
        findings.as_array().expect("findings").iter().filter_map(|finding| finding["level"].as_str()).collect();
    assert_eq!(levels, ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "error", "warning"]);
}

fn run_json(run: &CommandOutput) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stdout))
}

#[tokio::test]
async fn the_doctor_is_content_with_a_good_set_up_and_names_a_bad_config() {
    let (_fixture, up) = http_fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let write = |text: &str| std::fs::write(folder.path().join("hikite.json"), text).expect("a file");
    write(&json!({ "mcpServers": { "up": up }, "server": { "listen": "127.0.0.1:0" } }).to_string());
    let run = PROGRAMS.run(folder.path(), &["doctor"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    write("{ broken");
    let run = PROGRAMS.run(folder.path(), &["doctor"]).await;
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.starts_with("error   config: "), "{}", run.stdout);
}

#[tokio::test]
async fn the_doctor_closes_files_with_secrets_when_asked() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), json!({ "server": { "listen": "127.0.0.1:0" } }).to_string())
        .expect("a file");
    let doctor = async |flags: &[&str]| PROGRAMS.run(folder.path(), &[&["doctor"], flags].concat()).await.stdout;
    assert!(!doctor(&[]).await.contains("can be read by others"));
    let key = folder.path().join("data/vault.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("our file");
    let said = doctor(&[]).await;
    assert!(said.contains("vault.key can be read by others (mode 644)") && said.contains("chmod 600"), "{said}");
    let said = doctor(&["--fix"]).await;
    assert!(said.contains("was readable by others; fixed"), "{said}");
    assert_eq!(key.metadata().expect("our file").permissions().mode() & 0o777, 0o600);
    assert!(!doctor(&[]).await.contains("can be read by others"));
}

#[tokio::test]
async fn completions_are_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let bash = PROGRAMS.run(folder.path(), &["completions", "bash"]).await;
    assert_eq!(bash.code, Some(0), "{}", bash.stderr);
    assert!(bash.stdout.contains("_hikite()") && bash.stdout.contains("doctor"));
    assert!(bash.stdout.contains("register") && bash.stdout.contains("hikite,call)"));
    assert!(!bash.stdout.contains("__guard"), "the guard is not for people");
}

#[tokio::test]
async fn a_reader_that_leaves_early_is_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "{}").expect("a file");
    let mut command = PROGRAMS.hikite(folder.path());
    command.args(["config", "schema"]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("hikite");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
}

#[tokio::test]
async fn a_taken_port_is_explained() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "{}").expect("a file");
    let run = PROGRAMS.run(folder.path(), &["serve", "--listen", &address]).await;
    assert_eq!(run.code, Some(1));
    let said = format!("error: cannot listen on {address}: Address already in use (os error 98)\nhint: `");
    assert!(run.stderr.starts_with(&said), "{}", run.stderr);
    let owner = format!("(process {}) uses the port. Choose another address with `--listen`.\n", std::process::id());
    assert!(run.stderr.ends_with(&owner), "{}", run.stderr);
}

#[tokio::test]
async fn the_local_token_is_shown_when_asked_for_and_stands_in_no_log() {
    let gateway = configured(json!({})).await;
    gateway.wait_for_stderr("token show` prints it").await;
    let said = gateway.stderr();
    assert!(!said.contains(gateway.token()), "{said}");
    let shown = gateway.run(&["token", "show"]).await;
    assert_eq!((shown.code, shown.stdout.trim_end()), (Some(0), gateway.token()), "{}", shown.stderr);
    assert!(!shown.stderr.contains(gateway.token()), "data goes to stdout");
    let shown = gateway.run(&["token", "show", "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(shown["token"], gateway.token());

    let folder = tempfile::tempdir().expect("a folder");
    for (config, why) in [
        (json!({}), "yet"),
        (json!({ "auth": { "token": "a-long-enough-token-of-mine" } }), "auth.token"),
        (json!({ "auth": { "mode": "none" } }), "No token is needed"),
    ] {
        std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
        let refused = PROGRAMS.run(folder.path(), &["token", "show"]).await;
        assert!(
            refused.code == Some(1) && refused.stdout.is_empty() && refused.stderr.contains(why),
            "{}",
            refused.stderr
        );
        assert!(!refused.stderr.contains("of-mine") && !folder.path().join("data/token").exists());
    }
}

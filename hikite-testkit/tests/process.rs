//! The fixture as a process: misbehavior that only a process can show.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

struct FixtureProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl FixtureProcess {
    fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fixture-upstream"));
        command.args(flags).env("FIXTURE_PROBE", "set");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    fn initialized(flags: &[&str]) -> Self {
        let mut process = Self::start(flags);
        process.send(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "0"},
            }),
        );
        process.line();
        process
    }

    fn send(&mut self, method: &str, params: &Value) {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input.as_ref().expect("open"), "{line}").expect("open");
    }

    fn call(&mut self, name: &str, arguments: &Value) {
        self.send("tools/call", &json!({"name": name, "arguments": arguments}));
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).expect("open");
        line
    }

    fn text(&mut self) -> String {
        let answer: Value = serde_json::from_slice(&self.line()).expect("JSON");
        answer["result"]["content"][0]["text"].as_str().expect("text").to_owned()
    }
}

impl Drop for FixtureProcess {
    fn drop(&mut self) {
        // Both fail only if the process has already been reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_crash_kills_the_process_by_a_signal() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    process.call("crash", &json!({}));
    assert!(process.line().is_empty());
    assert_eq!(process.child.wait().expect("a child").code(), None);
}

#[test]
fn the_process_exits_after_its_last_answer() {
    let mut process = FixtureProcess::initialized(&["--stdio", "--die-after", "1"]);
    process.call("count", &json!({}));
    assert_eq!(process.text(), "1");
    assert_eq!(process.child.wait().expect("a child").code(), Some(3));
}

#[test]
fn garbage_comes_before_the_answer() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    process.call("garbage", &json!({}));
    for _ in 0..6 {
        let line: Result<Value, _> = serde_json::from_slice(&process.line());
        assert!(!line.is_ok_and(|line| line.get("jsonrpc").is_some()));
    }
    assert_eq!(process.text(), "after the garbage");
}

#[test]
fn the_flood_waits_for_a_reader() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    let mut stderr = process.child.stderr.take().expect("piped");
    process.call("flood_stderr", &json!({}));
    let mut flood = vec![0; 5_000_000];
    stderr.read_exact(&mut flood).expect("a flood");
    // The rest of the last line still waits in the pipe, which is large enough for it.
    assert_eq!(process.text(), "after the flood");
}

#[test]
fn a_big_line_is_as_big_as_asked() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    process.call("big_line", &json!({}));
    assert_eq!(process.text().len(), 2_000_000);
    process.call("big_line", &json!({"bytes": 10}));
    assert_eq!(process.text().len(), 10);
}

#[test]
fn the_environment_can_be_read() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    process.call("env", &json!({"name": "FIXTURE_PROBE"}));
    assert_eq!(process.text(), "set");
}

#[test]
fn grandchildren_outlive_the_process_until_killed() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    process.call("spawn_grandchild", &json!({}));
    let pids: Value = serde_json::from_str(&process.text()).expect("JSON");
    drop(process);
    for name in ["child", "escaped"] {
        let pid = pids[name].as_u64().expect("a process id");
        assert!(pid > 1);
        let killed = Command::new("kill").arg(pid.to_string()).status().expect("kill exists");
        assert!(killed.success(), "{name} was not running");
    }
}

#[test]
fn the_end_of_input_ends_the_process_after_the_last_answer() {
    let mut process = FixtureProcess::initialized(&["--stdio"]);
    process.call("echo", &json!({"text": "last words"}));
    drop(process.input.take());
    assert_eq!(process.text(), "last words");
    assert!(process.child.wait().expect("a child").success());
}

#[test]
fn over_http_the_first_line_is_the_url() {
    let mut process = FixtureProcess::start(&["--http", "127.0.0.1:0"]);
    let line = String::from_utf8(process.line()).expect("UTF-8");
    assert!(line.starts_with("http://127.0.0.1:") && line.trim_end().ends_with("/mcp"), "{line}");
}

#[test]
fn a_replayed_tool_keeps_its_bytes() {
    let folder = std::env::temp_dir().join(format!("fixture-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("list.json");
    let tool = r#"{"z":1.0,"name":"b","inputSchema":{"type":"object"},"a":"\u00e9"}"#;
    let text =
        format!(r#"{{"serverInfo":{{"version":"1","name":"n"}},"instructions":null,"tools":[{tool}],"prompts":null}}"#);
    std::fs::write(&file, text).expect("a file");
    let mut process = FixtureProcess::start(&["--stdio", "--replay", file.to_str().expect("UTF-8")]);
    process.send(
        "initialize",
        &json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        }),
    );
    let hello = String::from_utf8(process.line()).expect("UTF-8");
    assert!(hello.contains(r#""serverInfo":{"version":"1","name":"n"}}"#), "{hello}");
    assert!(!hello.contains("prompts") && !hello.contains("instructions"));
    process.send("tools/list", &json!({}));
    assert!(String::from_utf8(process.line()).expect("UTF-8").contains(tool));
    process.call("b", &json!({"x": 1}));
    assert_eq!(process.text(), r#"{"tool":"b","arguments":{"x":1}}"#);
    std::fs::remove_dir_all(&folder).expect("ours");
}

//! `hikite measure`: token costs of tools, from running servers and from recorded lists, as text, JSON, Markdown and
//! SVG.

use std::path::Path;

use hikite_testkit::gateway::CommandOutput;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::search::recorded;
use crate::{PROGRAMS, stdio, with};

const LISTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite-testkit/fixtures/toolsets");

/// Creates a folder with recorded servers that never change, and one that is down.
fn folder() -> TempDir {
    let down = json!({ "description": "down", "command": "/no/such/program" });
    let servers = json!({ "time": recorded("time"), "git": recorded("git"), "down": down });
    in_folder(&json!({ "mcpServers": servers }))
}

fn in_folder(config: &Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config.clone();
    config["modules"] = json!({ "builtin": false });
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    folder
}

async fn run(folder: &TempDir, arguments: &[&str]) -> CommandOutput {
    let run = PROGRAMS.run(folder.path(), arguments).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

async fn json_of(folder: &TempDir, arguments: &[&str]) -> Value {
    let run = run(folder, arguments).await;
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stdout))
}

fn read(folder: &TempDir, file: &str) -> String {
    std::fs::read_to_string(folder.path().join(file)).expect("a file that was written")
}

/// Removes the figures, which change with every word of a surface.
fn without_figures(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let words = line.split_whitespace().map(|word| {
            let is_figure = word.starts_with(|c: char| c.is_ascii_digit() || c == '<');
            if is_figure { "N" } else { word }
        });
        shown.push_str(&words.collect::<Vec<_>>().join(" "));
        shown.push('\n');
    }
    shown
}

#[tokio::test]
async fn people_are_told_what_their_tools_cost() {
    let folder = folder();
    let run = run(&folder, &["measure", "--top", "2"]).await;
    // A server that has already returned its list is not waited for.
    assert!(run.stderr.contains("down: failed: "), "the wait for lists is shown: {}", run.stderr);
    insta::assert_snapshot!(without_figures(&run.stdout));
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 110), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "plain when it is piped");
}

#[tokio::test]
async fn programs_are_told_the_same() {
    let folder = folder();
    let told = json_of(&folder, &["measure", "--json"]).await;
    let members: Vec<&str> = told.as_object().expect("an object").keys().map(String::as_str).collect();
    let page = include_str!("../../../docs/measure.md");
    for member in &members {
        assert!(page.contains(&format!("`{member}`")), "docs/measure.md says nothing of `{member}`");
    }
    assert_eq!((&told["vocabulary"], &told["silent"]), (&json!("o200k_base"), &json!(["down"])));
    let git = told["modules"].as_array().and_then(|all| all.iter().find(|module| module["module"] == "git"));
    let git = git.expect("git is measured");
    let figure = |name: &str| git[name].as_u64().unwrap_or_else(|| panic!("{git}"));
    assert!(figure("names") < figure("signatures") && figure("signatures") < figure("flat"), "{git}");
    assert_eq!(told["menus"][0]["surface"], json!(["direct"]));
    assert_eq!((&told["menus"][0]["tokens"], &told["menus"][0]["percent"]), (&told["flat"], &json!(100.0)));
    let defaults = told["menus"].as_array().expect("menus").iter().filter(|menu| menu["default"] == true);
    assert_eq!(defaults.map(|menu| &menu["surface"]).collect::<Vec<_>>(), [&json!(["modules", "search"])]);
    assert_eq!((told["largest"].as_array().map(Vec::len), &told["answers"]), (Some(10), &json!([])));
}

#[tokio::test]
async fn recorded_answers_are_measured_with_and_without_their_shape() {
    let folder = folder();
    let issue = |number: u32| json!({ "number": number, "title": "t", "body": "some words ".repeat(30), "user": { "login": "a", "id": number } });
    let issues: Value = (1..20).map(issue).collect();
    let result = json!({ "content": [{ "type": "text", "text": issues.to_string() }] });
    for (file, text) in [
        ("answers/git/git_log-first.json", issues.to_string()),
        ("answers/other.list.json", result.to_string()),
        ("answers/shapes.json", json!({ "git:git_log": "number,user.login" }).to_string()),
    ] {
        let file = folder.path().join(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }
    let told = json_of(&folder, &["measure", "--json", "--answers", "answers"]).await;
    let (other, git) = (&told["answers"][0], &told["answers"][1]);
    assert_eq!((&git["module"], &git["tool"], &git["rows"]), (&json!("git"), &json!("git_log"), &json!(19)));
    assert_eq!((&other["tool"], &other["json"], &other["shaped"]), (&json!("list"), &git["json"], &Value::Null));
    assert!(git["shaped"].as_u64() < git["compact"].as_u64() && git["compact"].as_u64() <= git["json"].as_u64());
    let text = run(&folder, &["measure", "--answers", "answers"]).await.stdout;
    assert!(text.contains("\nAnswers\n") && text.contains("\n2 modules "), "{text}");
}

#[tokio::test]
async fn tools_are_called_only_where_it_is_asked_for_and_they_promise_to_change_nothing() {
    // `rich` is read-only without required arguments, `echo` is read-only with one, `who` declares nothing.
    let only = json!({ "includeNames": ["echo", "rich", "who"] });
    let folder = in_folder(&json!({ "mcpServers": { "up": with(stdio(&[]), "tools", only) } }));
    assert_eq!(json_of(&folder, &["measure", "--json"]).await["answers"], json!([]));
    let run = run(&folder, &["measure", "--json", "--try"]).await;
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let called: Vec<&Value> =
        told["answers"].as_array().expect("answers").iter().map(|answer| &answer["tool"]).collect();
    assert_eq!(called, [&json!("rich")], "{}", run.stderr);
}

#[tokio::test]
async fn recorded_lists_need_no_config_and_are_drawn_and_written_down() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "this is no config").expect("a file");
    let flags = ["measure", "--json", "--lists", LISTS, "--chart", "tools.svg", "--markdown", "tools.md"];
    let told = json_of(&folder, &flags).await;
    assert_eq!((&told["tools"], told["modules"].as_array().map(Vec::len)), (&json!(590), Some(29)));
    let picture = read(&folder, "tools.svg");
    well_formed(&picture);
    assert!(
        picture.contains("<title id=\"title\">") && picture.contains("<desc id=\"desc\">The tools: all in one list: ")
    );
    assert!(picture.contains("prefers-color-scheme: dark") && !picture.contains("<script"), "{picture}");
    assert_eq!(picture.matches("http").count(), 1, "nothing is fetched; the one address is the name of the format");
    let page = read(&folder, "tools.md");
    assert!(page.starts_with("# What tools cost a model\n") && page.contains("| airtable | 16 |"), "{page}");
    let around = format!("before\n{}\nafter\n", page.split_once("\n\n").expect("a title").1.trim_end());
    std::fs::write(folder.path().join("tools.md"), &around).expect("a file");
    run(&folder, &["measure", "--lists", LISTS, "--markdown", "tools.md"]).await;
    assert_eq!(read(&folder, "tools.md"), around, "what stands around the figures stays");
    assert!(!folder.path().join("data").exists(), "nothing is kept");
}

#[tokio::test]
async fn what_cannot_be_measured_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    for (flags, words) in [
        (&["--lists", "empty"][..], "There are no recorded lists in empty.\nhint: Use one JSON file per server"),
        (&["--lists", "nowhere"], "cannot read nowhere"),
        (
            &["--lists", LISTS, "--answers", "empty"],
            "There are no recorded responses in empty.\nhint: Use files such as",
        ),
        (&["--lists", LISTS, "--chart", "no/such/folder/x.svg"], "cannot write no/such/folder/x.svg"),
        (&["--lists", LISTS, "--try"], "cannot be used with"),
    ] {
        let flags: Vec<&str> = std::iter::once("measure").chain(flags.iter().copied()).collect();
        let run = PROGRAMS.run(folder.path(), &flags).await;
        assert!(run.code != Some(0) && run.stderr.contains(words), "{flags:?}: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
    assert!(Path::new(LISTS).is_dir());
}

/// Asserts that a document is well-formed.
#[track_caller]
fn well_formed(document: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = document.trim_end();
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(!text.contains('>') && !text.contains("& "), "{text}");
        assert!(!open.is_empty() || text.trim().is_empty(), "text outside of everything: {text}");
        let end = at + rest[at..].find('>').unwrap_or_else(|| panic!("never closed: {}", &rest[at..]));
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match (tag.strip_prefix('/'), tag.strip_suffix('/')) {
            (Some(name), _) => assert_eq!(open.pop(), Some(name)),
            (None, Some(_)) => assert!(!open.is_empty()),
            (None, None) => open.push(tag.split(' ').next().unwrap_or_default()),
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
}

//! An invalid server, provider or service is left out; other faults reject the file.

use std::path::Path;

use crate::{Config, ConfigEnvironment, Problems};

fn load(text: &str) -> Result<Config, Problems> {
    let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    Config::parse_valid_entries(text, Path::new("hikite.json"), ConfigEnvironment { env: &|_| None, read: &read })
}

#[track_caller]
fn loaded(text: &str) -> Config {
    load(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

fn names(config: &Config) -> Vec<&str> {
    config.servers.iter().map(|server| &*server.name).collect()
}

fn lines(config: &Config) -> Vec<String> {
    config.invalid.iter().map(ToString::to_string).collect()
}

const A_AND_C: &str = r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "x", "env": { "K": "${GONE}" }, "nope": 1 },
  "c": { "command": "x" } } }"#;

#[test]
fn one_invalid_server_is_left_out_with_one_line() {
    let config = loaded(A_AND_C);
    assert_eq!(names(&config), ["a", "c"]);
    assert_eq!(*config.disabled, ["b".into()]);
    let [line] = &*lines(&config) else { panic!("{:?}", config.invalid) };
    assert!(line.starts_with("the server `b` is disabled: hikite.json:1:"), "{line}");
    assert!(line.contains("mcpServers.b.env.K: the environment variable `GONE` is not set. Set it"), "{line}");
    assert!(line.contains("mcpServers.b.nope: unknown key"), "{line}");
    let problems = config.check_entries().expect_err("a check reports them");
    assert_eq!(problems.errors.len(), 2);
}

#[test]
fn an_invalid_server_keeps_its_previous_definition_and_place() {
    let before = loaded(&A_AND_C.replace("${GONE}", "v").replace(", \"nope\": 1", ""));
    assert_eq!(names(&before), ["a", "b", "c"]);
    let mut config = loaded(A_AND_C);
    config.keep_previous(&before);
    assert_eq!((names(&config), config.disabled.len()), (vec!["a", "b", "c"], 0));
    assert_eq!(config.servers[1].definition_hash, before.servers[1].definition_hash);
    assert!(lines(&config)[0].starts_with("the server `b` keeps its previous definition: "), "{:?}", lines(&config));
    assert!(config.check_entries().is_err());
}

#[test]
fn a_fault_in_another_section_rejects_the_file_and_all_faults_are_reported() {
    for other in [
        r#""auth": { "mode": "token", "token": "${GONE}" }"#,
        r#""vault": { "key_file": "${GONE}" }"#,
        r#""projects": { "p": { "nope": 1 } }"#,
        r#""server": { "listen": "nowhere" }"#,
        r#""mcpServer": {}"#,
    ] {
        let problems = load(&A_AND_C.replacen('{', &format!("{{ {other},"), 1)).expect_err(other);
        let paths: Vec<&str> = problems.errors.iter().map(|problem| problem.path.as_str()).collect();
        assert!(paths.contains(&"mcpServers.b.env.K") && paths.len() > 2, "{other}: {paths:?}");
    }
}

#[test]
fn an_invalid_provider_is_left_out_and_known_as_such() {
    let text = r#"{ "providers": { "notion": { "token": "${GONE}" }, "github": { "token": "t" } } }"#;
    let mut config = loaded(text);
    assert_eq!(config.providers.len(), 1);
    assert!(config.is_provider_invalid("notion") && !config.is_provider_invalid("github"));
    config.keep_previous(&loaded(&text.replace("${GONE}", "before")));
    assert_eq!(config.providers.len(), 2);
    assert!(!config.is_provider_invalid("notion"));
}

#[test]
fn an_unknown_service_is_left_out_but_a_wrong_list_rejects_the_file() {
    let config = loaded(r#"{ "modules": { "builtin": ["notion", "notoin"] } }"#);
    assert_eq!(config.modules.builtin, ["notion"]);
    assert!(lines(&config)[0].starts_with("the service `notoin` is disabled: "), "{:?}", lines(&config));
    assert!(load(r#"{ "modules": { "builtin": ["notion", 7] } }"#).is_err(), "the list would mean all services");
}

#[test]
fn a_category_may_name_an_invalid_server() {
    let text = A_AND_C.replacen('{', r#"{ "categories": { "k": { "description": "d", "server": "b" } },"#, 1);
    assert_eq!(loaded(&text).categories.len(), 1);
}

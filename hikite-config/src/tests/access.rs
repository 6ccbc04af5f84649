//! Tests of the `auth` section of servers.

use super::{load, loaded, show, warned, with_server};
use crate::GrantWord;

fn with_auth(auth: &str) -> String {
    with_server(&format!(r#"{{ "description": "d", "url": "https://x.example/mcp", "auth": {auth} }}"#))
}

#[track_caller]
fn fails(auth: &str, reason: &str) {
    let problems = load(&with_auth(auth)).expect_err(auth).to_string();
    assert!(problems.contains(reason), "{problems}");
}

#[test]
fn a_remote_server_may_be_logged_in_to_and_a_program_not() {
    let plain = loaded(&with_server(r#"{ "description": "d", "url": "https://x.example/mcp" }"#));
    assert!(plain.servers[0].access.is_some());
    let program = loaded(&with_server(r#"{ "description": "d", "command": "x" }"#));
    assert!(program.servers[0].access.is_none());
    let given = r#"{ "description": "d", "url": "https://x.example/mcp", "headers": { "authorization": "Basic x" } }"#;
    assert!(loaded(&with_server(given)).servers[0].access.is_none());
    warned(
        &with_server(
            "{ \"description\": \"d\", \"url\": \"https://x.example/mcp\", \"auth\": {},\n\"headers\": { \"Authorization\": \"x\" } }",
        ),
        &["hikite.json:1:78: mcpServers.s.auth: ignored: `headers` has an `Authorization`"],
    );
}

#[test]
fn a_client_of_the_owner_is_read_and_not_shown() {
    let config = loaded(&with_auth(
        r#"{ "grant": "client_credentials", "client_id": "c", "client_secret": "${KEY}", "scopes": ["a"] }"#,
    ));
    let access = config.servers[0].access.as_ref().expect("access");
    assert_eq!(access.grant, GrantWord::ClientCredentials);
    assert_eq!(access.client_secret.as_ref().expect("a secret").expose(), "s3cret");
    let shown = show(&config);
    assert_eq!(shown["mcpServers"]["s"]["auth"]["client_secret"], "***");
    assert!(!shown.to_string().contains("s3cret") && !format!("{config:?}").contains("s3cret"));
    let file = loaded(&with_auth(r#"{ "client_id": "c", "client_secret_file": "key.txt" }"#));
    let access = file.servers[0].access.as_ref().expect("access");
    assert_eq!(access.client_secret.as_ref().expect("a secret").expose(), "from-file");
}

#[test]
fn who_is_logged_in_as_makes_another_server_of_it() {
    let hash = |auth: &str| loaded(&with_auth(auth)).servers[0].definition_hash.clone();
    assert_ne!(hash(r#"{ "client_id": "a" }"#), hash(r#"{ "client_id": "b" }"#));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    fails(r#"{ "client_secret": "x" }"#, "has no `client_id`");
    fails(r#"{ "grant": "client_credentials", "client_id": "c" }"#, "no credential for the client");
    fails(r#"{ "client_id": "c", "client_secret": "x", "client_secret_file": "key.txt" }"#, "more than one way");
    fails(r#"{ "scopes": ["a b"] }"#, "`a b` is not a valid scope");
    fails(r#"{ "issuer": "x" }"#, "issuer");
    fails(r#"{ "grant": "password" }"#, "grant");
    fails(r#"{ "clientid": "c" }"#, "client_id");
}

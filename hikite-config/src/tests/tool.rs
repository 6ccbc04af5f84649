//! Tests of the `tools` and `egress` sections: valid entries, masking, and the message for each mistake.

use serde_json::{Value, json};

use super::{loaded, refused, show};

fn with_http(http: &str) -> String {
    format!(
        "{{ \"tools\": {{ \"get-user\": {{ \"description\": \"d\", \"parameters\": [{{ \"name\": \"id\", \"type\": \"string\" }}],\n  \"http\": {http} }} }} }}"
    )
}

fn form(text: &str) -> Value {
    hikite_core::json::Raw::from(loaded(text).tools[0].form.clone()).value()
}

#[test]
fn a_tool_becomes_the_form_in_which_tools_are_registered() {
    let text = json!({ "tools": { "get-user": {
        "description": "d", "module": "crm", "version": "2.0.0", "tags": ["a"], "enabled": false,
        "inputSchema": { "type": "object", "properties": { "id": { "type": "integer" } } },
        "http": { "method": "POST", "url": "https://x/{id}?k=${KEY}", "headers": { "A": "Bearer ${KEY}", "N": 5, "F": { "file": "key.txt" } },
                  "query": { "n": 1, "v": "{id}" }, "body": { "a": ["${KEY}", "{id}", 1.5, null] }, "result": "data[0]" }
    } } });
    let expected = json!({ "name": "get-user", "description": "d", "module": "crm",
        "inputSchema": { "type": "object", "properties": { "id": { "type": "integer" } } },
        "version": "2.0.0", "tags": ["a"], "enabled": false,
        "http": { "method": "POST", "url": "https://x/{id}?k=s3cret", "headers": { "A": "Bearer s3cret", "N": "5", "F": "from-file" },
                  "query": { "n": 1, "v": "{id}" }, "body": { "a": ["s3cret", "{id}", 1.5, null] }, "result": "data[0]" } });
    assert_eq!(form(&text.to_string()), expected);
    let config = loaded(&text.to_string());
    assert_eq!(config.tools[0].name(), "get-user");
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
}

#[test]
fn secrets_of_a_tool_are_not_shown() {
    let text = with_http(
        r#"{ "method": "POST", "url": "https://x/{id}?key=literal", "headers": { "A": "literal" },
            "query": { "q": "{id}", "k": "literal" }, "body": { "client_secret": "literal", "id": "{id}", "list": [{ "api_key": 5 }] } }"#,
    );
    let shown = show(&loaded(&text));
    let http = json!({ "method": "POST", "url": "https://x/{id}?key=***", "headers": { "A": "***" },
        "query": { "q": "{id}", "k": "***" }, "body": { "client_secret": "***", "id": "{id}", "list": [{ "api_key": "***" }] } });
    assert_eq!(shown["tools"]["get-user"]["http"], http);
    assert_eq!(show(&loaded(&shown.to_string())), shown, "what is shown loads again");
}

#[test]
fn what_a_variable_holds_is_no_template() {
    let environment = super::ConfigEnvironment {
        env: &|name| (name == "BRACES").then(|| "{id} }{".to_owned()),
        read: &|_| Err(std::io::ErrorKind::NotFound.into()),
    };
    let text = with_http(r#"{ "url": "https://x/", "headers": { "A": "${BRACES}{id}" } }"#);
    let config = super::Config::parse(&text, std::path::Path::new("x"), environment).expect("a config");
    let http = config.tools[0].form.get("http").expect("http").value();
    assert_eq!(http["headers"]["A"], "{{id}} }}{{{id}");
}

#[test]
fn mistakes_in_a_tool_have_their_line() {
    let at = "error: hikite.json:2";
    let check = |http: &str, expected: &str| refused(&with_http(http), expected);
    check(
        r#"{ "url": "https://x/{idd}" }"#,
        &format!("{at}:20: tools.get-user.http.url: there is no parameter `idd`. Did you mean `id`?"),
    );
    check(
        r#"{ "url": "https://x/", "headers": { "Host": "y" } }"#,
        &format!("{at}:55: tools.get-user.http.headers.Host: `host` is set by hikite"),
    );
    check(
        r#"{ "url": "https://x/", "method": "PUT", "body": [{ "a": "{no}" }] }"#,
        &format!("{at}:67: tools.get-user.http.body[0].a: there is no parameter `no`"),
    );
    check(
        r#"{ "url": "https://x/${NOPE}" }"#,
        &format!(
            "{at}:20: tools.get-user.http.url: the environment variable `NOPE` is not set\nhint: Set it, or give it a default: `${{NOPE:-…}}`."
        ),
    );
    check(
        r#"{ "uri": "https://x/" }"#,
        &format!("{at}:13: tools.get-user.http.uri: unknown key\nhint: Did you mean `url`?"),
    );
}

#[test]
fn mistakes_around_the_request_are_seen_too() {
    let wrong = r#"{ "tools": { "GetUser": { "description": " ", "parameters": [], "inputSchema": {}, "http": { "url": "https://x/" } } } }"#;
    refused(
        wrong,
        "error: hikite.json:1:14: tools.GetUser: A tool name starts with a lowercase letter and has only lowercase letters, numbers and hyphens.
error: hikite.json:1:42: tools.GetUser.description: Tool description is required
error: hikite.json:1:61: tools.GetUser.parameters: Give either `parameters` or `inputSchema`, not both",
    );
    refused(r#"{ "tools": { "a": { "description": "d" } } }"#, "error: hikite.json:1:14: tools.a: `http` is missing");
}

#[test]
fn the_egress_section_is_checked() {
    let config = loaded(r#"{ "egress": { "allow": ["127.0.0.1", "10.0.0.0/8", "internal.example"] } }"#);
    assert_eq!(config.egress.allow, ["127.0.0.1", "10.0.0.0/8", "internal.example"]);
    refused(
        r#"{ "egress": { "allow": ["10.0.0.0/33", "https://x"] } }"#,
        "error: hikite.json:1:25: egress.allow[0]: `10.0.0.0/33` is not an address, an address block or a host name
hint: Write `127.0.0.1`, `10.0.0.0/8` or `internal.example`.
error: hikite.json:1:40: egress.allow[1]: `https://x` is not an address, an address block or a host name
hint: Write `127.0.0.1`, `10.0.0.0/8` or `internal.example`.",
    );
}

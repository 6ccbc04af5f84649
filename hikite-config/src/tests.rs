//! Tests of the whole config: valid files, and the message for each mistake.

use std::path::Path;
use std::time::Duration;

use hikite_core::limits::LineLimit;
use hikite_core::rate::Rate;

use hikite_gateway::Surface;

mod access;
mod invalid_entry;
mod project;
mod tool;

use super::{AuthSection, Config, ConfigEnvironment, OauthSection, Problems, ShareMode, TransportConfig, show};

fn load(text: &str) -> Result<Config, Problems> {
    let env = |name: &str| match name {
        "HOME" => Some("/home/me".to_owned()),
        "KEY" => Some("s3cret".to_owned()),
        _ => None,
    };
    let read = |path: &Path| match path.to_str() {
        Some("conf/key.txt") => Ok("from-file\n".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    Config::parse(text, Path::new("conf/hikite.json"), ConfigEnvironment { env: &env, read: &read })
}

#[track_caller]
fn loaded(text: &str) -> Config {
    load(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// Asserts the error lines, with the folder removed.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let problems = load(text).expect_err(text).to_string();
    assert_eq!(problems.replace("conf/hikite.json", "hikite.json"), expected.trim(), "{text}");
}

#[track_caller]
fn warned(text: &str, expected: &[&str]) {
    assert_eq!(loaded(text).warnings, expected.iter().map(|w| format!("conf/{w}")).collect::<Vec<_>>(), "{text}");
}

/// Returns a file with one server and one category whose `tools` are given.
fn with_tools(tools: &str) -> String {
    format!(
        "{{ \"mcpServers\": {{ \"serena\": {{ \"description\": \"d\", \"command\": \"x\" }} }},\n  \"categories\": {{ \"fs\": {{ \"description\": \"d\", \"server\": \"serena\",\n    \"tools\": {tools} }} }} }}"
    )
}

/// Returns a file with one server.
fn with_server(server: &str) -> String {
    format!("{{ \"mcpServers\": {{ \"s\": {server} }} }}")
}

#[test]
fn the_example_loads_without_any_variable_and_switches_dangerous_tools_off() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite.example.json");
    let config = Config::load(Some(Path::new(path)), &|_| None).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((config.warnings.len(), config.invalid.len()), (0, 0), "{:?} {:?}", config.warnings, config.invalid);
    assert_eq!(
        config.categories.iter().map(|c| &*c.name).collect::<Vec<_>>(),
        ["fs", "code", "memory", "session", "meta"]
    );
    assert!(config.categories[3].selection.disables("serena", "execute_shell_command"));
    let mut shown = show(&config)["limits"].clone();
    assert_eq!(shown.take(), show(&loaded("{}"))["limits"]);
}

#[test]
fn the_example_shows_every_key() {
    let example = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite.example.json"));
    for definition in super::schema()["$defs"].as_object().expect("definitions").values() {
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            let about = property["description"].as_str().unwrap_or_default();
            let foreign = about.contains("nother client") || about.contains("ignored");
            let deprecated = property["deprecated"] == true;
            assert!(foreign || deprecated || example.contains(&format!("\"{key}\"")), "{key} is not in the example");
        }
    }
}

#[test]
fn a_deprecated_limit_still_counts_and_says_so() {
    let config = loaded(r#"{ "limits": { "parked_calls": 7 } }"#);
    assert_eq!(config.limits.suspended_calls, 7);
    assert!(config.warnings[0].ends_with("limits.parked_calls: deprecated: use `limits.suspended_calls`"));
    let config = loaded(r#"{ "limits": { "line_bytes": "1MiB", "answer_bytes": "2MiB" } }"#);
    assert_eq!(config.limits.stdio_line(), LineLimit { bytes: 1 << 20, name: "line_bytes" });
    assert!(config.warnings[0].ends_with("limits.line_bytes: deprecated: use `limits.answer_bytes`"));
    let config = loaded(r#"{ "limits": { "answer_bytes": "2MiB" } }"#);
    assert_eq!(config.limits.stdio_line(), LineLimit { bytes: 2 << 20, name: "answer_bytes" });
    assert!(config.warnings.is_empty());
}

#[test]
fn clients_that_need_short_names_are_globs_in_any_case() {
    let config = loaded(r#"{ "server": { "short_names": ["My-Editor*", "b"] } }"#);
    assert_eq!(config.server.short_names, ["my-editor*", "b"]);
    for wrong in ["", "/a/", "[a"] {
        let text = format!(r#"{{ "server": {{ "short_names": ["{wrong}"] }} }}"#);
        assert!(load(&text).is_err(), "{wrong}");
    }
}

#[test]
fn the_examples_of_the_seed_load_as_they_are() {
    let root = include_str!("tests/seed-4.1.jsonc");
    let config = loaded(root);
    assert_eq!(config.categories[0].description, "ファイル/ディレクトリの読み書きと検索。");
    assert!(config.categories[1].selection.disables("serena", "replace_symbol_body"));
    assert_eq!(config.server.surfaces, [Surface::Categories]);
    let excerpt = loaded(include_str!("tests/seed-11.jsonc"));
    assert!(excerpt.categories[0].selection.selects("serena", "read_file"));
    assert!(excerpt.categories[0].selection.disables("serena", "execute_shell_command"));
    assert_eq!(config.warnings.len() + excerpt.warnings.len(), 0);
}

#[test]
fn no_file_means_loopback_four_tools_and_a_token() {
    let config = loaded("{}");
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7300");
    assert_eq!(config.server.surfaces, [Surface::Modules, Surface::Search]);
    assert_eq!((config.auth, config.oauth), (AuthSection::Token(None), Some(OauthSection::default())));
    assert_eq!(config.data, Path::new("/home/me/.local/share/hikite"));
    assert!(config.servers.is_empty() && config.warnings.is_empty());
}

#[test]
fn blocks_pasted_from_other_clients_load() {
    let config = loaded(
        r#"{ "mcpServers": {
          "a": { "command": "npx", "args": ["-y", "a", "${KEY}"], "env": { "K": "${KEY}", "P": 3000, "F": { "file": "key.txt" } },
                 "disabled": false, "autoApprove": [], "timeout": 60, "transportType": "stdio", "note": "n" },
          "b": { "type": "streamableHttp", "url": "https://x/mcp?k=${KEY}", "timeout": 30000, "trust": false, "disabledTools": ["rm"] },
          "c": { "serverUrl": "https://x/sse", "transport": "sse", "headers": { "X-Key": "${KEY}" } } } }"#,
    );
    let [a, b, c] = &config.servers[..] else { panic!("three servers") };
    let TransportConfig::Stdio { args, env, inherit_env, .. } = &a.transport else { panic!("a program") };
    assert_eq!((args[2].expose(), args[2].to_string().as_str()), ("s3cret", "${KEY}"));
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("K", "s3cret"), ("P", "3000"), ("F", "from-file")]);
    assert!(!inherit_env);
    assert_eq!((a.call_timeout, b.call_timeout), (Some(Duration::from_secs(60)), Some(Duration::from_secs(30))));
    assert!(matches!(&b.transport, TransportConfig::Http { url, .. } if url.expose() == "https://x/mcp?k=s3cret"));
    assert!(!b.selection.selects("b", "rm") && b.selection.selects("b", "ls"));
    assert!(matches!(&c.transport, TransportConfig::Sse { headers, .. } if headers[0].1.expose() == "s3cret"));
    assert!(!format!("{config:?}{}", show(&config)).contains("s3cret"));
}

#[test]
fn the_settings_of_a_server_are_read() {
    let config = loaded(&with_server(
        r#"{ "description": "d", "command": "x", "cwd": "sub", "share": "never", "inheritEnv": true, "timeout": "1.5s",
             "concurrency": 3, "rate": "10/s", "tools": { "includePatterns": ["read_*"] } }"#,
    ));
    let server = &config.servers[0];
    assert_eq!((server.share, server.concurrency, server.rate), (ShareMode::Never, Some(3), Rate::parse("10/s")));
    assert_eq!(server.call_timeout, Some(Duration::from_millis(1500)));
    assert!(
        matches!(&server.transport, TransportConfig::Stdio { cwd: Some(cwd), inherit_env: true, .. } if cwd == Path::new("conf/sub"))
    );
    assert!(server.selection.selects("s", "read_x") && !server.selection.selects("s", "write_x"));
}

#[test]
fn the_hash_tells_definitions_apart_and_ignores_descriptions() {
    let hash = |server: &str| loaded(&with_server(server)).servers[0].definition_hash.clone();
    let first = hash(r#"{ "command": "x", "env": { "A": "s3cret" } }"#);
    assert_eq!(first.len(), 64);
    assert_eq!(first, hash(r#"{ "description": "d", "command": "x", "env": { "A": "${KEY}" }, "timeout": 3 }"#));
    assert_ne!(first, hash(r#"{ "command": "x", "env": { "A": "other" } }"#));
    assert_ne!(hash(r#"{ "url": "https://x" }"#), hash(r#"{ "url": "https://x", "type": "sse" }"#));
}

#[test]
fn a_disabled_server_is_left_out_but_known() {
    let text = r#"{ "mcpServers": { "off": { "command": "${NOT_SET}", "enabled": false } },
  "categories": { "c": { "description": "d", "server": ["off"] } } }"#;
    let config = loaded(text);
    assert!(config.servers.is_empty());
    assert_eq!((&*config.disabled[0], &*config.categories[0].servers[0]), ("off", "off"));
    warned(text, &["hikite.json:2:57: categories.c.server[0]: the server `off` is disabled"]);
}

#[test]
fn harmless_oddities_are_warned_about() {
    warned(
        "{ \"mcpServers\": {\n  \"s\": { \"url\": \"https://x/sse\",\n    \"envFile\": \".env\", \"alwaysAllow\": [\"t\"], \"args\": [] } } }",
        &[
            "hikite.json:2:10: mcpServers.s.url: this looks like the older transport: if it does not respond, add `\"type\": \"sse\"`",
            "hikite.json:3:5: mcpServers.s.envFile: ignored: put the variables in `env`",
            "hikite.json:3:24: mcpServers.s.alwaysAllow: ignored: it belongs to another client",
            "hikite.json:3:46: mcpServers.s.args: ignored: nothing is started for a `url`",
        ],
    );
    warned(
        &with_tools(r#"{ "includeNames": ["read_*"] }"#),
        &[
            "hikite.json:3:33: categories.fs.tools.includeNames[0]: `read_*` is used as a name; patterns have their own keys",
        ],
    );
    warned(
        r#"{ "auth": { "token": "short" }, "server": { "surface": "categories" } }"#,
        &[
            "hikite.json:1:13: auth.token: the token is shorter than 16 characters",
            "hikite.json:1:45: server.surface: `categories` is shown, but the config has none",
        ],
    );
}

#[test]
fn a_syntax_error_has_its_line() {
    refused(
        "{\n  \"data\": \"x\"\n  \"auth\": {}\n}",
        "error: hikite.json:3:3: expected `,` or `}`, found `\"`\nhint: A comma is missing before this.",
    );
    refused("[]", "error: hikite.json:1:1: expected an object, found an array");
}

#[test]
fn unknown_keys_are_all_named_with_the_nearest_right_one() {
    refused(
        "{\n  \"sever\": {},\n  \"mcpServers\": { \"s\": { \"comand\": \"x\" } },\n  \"categories\": { \"fs\": {\n      \"servr\": \"s\",\n      \"tools\": { \"include_names\": [], \"zzz\": 1 } } }\n}",
        "
error: hikite.json:2:3: sever: unknown key
hint: Did you mean `server`?
error: hikite.json:3:26: mcpServers.s.comand: unknown key
hint: Did you mean `command`?
error: hikite.json:5:7: categories.fs.servr: unknown key
hint: Did you mean `server`?
error: hikite.json:6:18: categories.fs.tools.include_names: unknown key
hint: Did you mean `includeNames`?
error: hikite.json:6:39: categories.fs.tools.zzz: unknown key
hint: `hikite config schema` describes every key.",
    );
}

#[test]
fn the_address_of_a_node_is_read_and_what_is_wrong_with_it_told() {
    let config = loaded(r#"{ "server": { "node_url": "http://10.0.0.5:7300/" } }"#);
    assert_eq!(config.server.node_url.as_deref(), Some("http://10.0.0.5:7300"));
    refused(
        r#"{ "server": { "node_url": "http://a/mcp" } }"#,
        "
error: hikite.json:1:27: server.node_url: `http://a/mcp` has a path
hint: Write `http://10.0.0.5:7300`.",
    );
}

#[test]
fn tls_and_proxies_are_read_and_what_is_wrong_with_them_told() {
    refused(
        r#"{ "server": { "tls": { "cert_file": "a" }, "trusted_proxies": ["proxy.example", "10.0.0.0/33"] }, "egress": { "min_tls": "1.1" } }"#,
        "
error: hikite.json:1:15: server.tls: `key_file` is missing
error: hikite.json:1:64: server.trusted_proxies[0]: `proxy.example` is not an address or an address block
hint: Write `127.0.0.1` or `10.0.0.0/8`.
error: hikite.json:1:81: server.trusted_proxies[1]: `10.0.0.0/33` is not an address or an address block
hint: Write `127.0.0.1` or `10.0.0.0/8`.
error: hikite.json:1:122: egress.min_tls: `1.1` is not a known value
hint: Did you mean `1.2` or `1.3`?",
    );
}

#[test]
fn wrong_types_and_words_say_what_was_expected() {
    refused(
        r#"{ "data": 5, "server": { "surface": "directt", "allowed_hosts": "x" }, "limits": { "sessions": 1.5, "drain": [] },
  "mcpServers": { "s": { "command": "x", "args": ["a", 1], "env": { "A": null }, "share": true, "enabled": "no" } } }"#,
        "
error: hikite.json:1:11: data: expected a string, found a number
error: hikite.json:1:37: server.surface: `directt` is not a known value
hint: Did you mean `direct`?
error: hikite.json:1:65: server.allowed_hosts: expected an array, found a string
error: hikite.json:1:96: limits.sessions: expected an integer, found a number
error: hikite.json:1:110: limits.drain: expected a string or a number, found an array
error: hikite.json:2:56: mcpServers.s.args[1]: expected a string, found a number
error: hikite.json:2:74: mcpServers.s.env.A: expected a string or a number or a boolean or an object, found null
error: hikite.json:2:91: mcpServers.s.share: expected a string, found a boolean
hint: Use one of `auto`, `always`, `never`.
error: hikite.json:2:108: mcpServers.s.enabled: expected a boolean, found a string",
    );
}

#[test]
fn what_is_wrong_is_not_reported_twice() {
    refused(
        r#"{ "mcpServers": { "s": 5, "t": { "command": "x", "env": { "A": { "path": "p" }, "B": {} } } },
  "categories": { "a": { "server": "s" }, "b": { "server": ["t", 7] }, "c": { "server": 3 } } }"#,
        "
error: hikite.json:1:24: mcpServers.s: expected an object, found a number
error: hikite.json:1:66: mcpServers.t.env.A.path: unknown key
hint: `hikite config schema` describes every key.
error: hikite.json:1:81: mcpServers.t.env.B: `file` is missing
error: hikite.json:2:66: categories.b.server[1]: expected a string, found a number
error: hikite.json:2:89: categories.c.server: expected a string or an array, found a number",
    );
}

#[test]
fn a_name_written_twice_names_both_lines() {
    refused(
        "{ \"mcpServers\": {\n  \"s\": { \"command\": \"x\" },\n  \"s\": { \"command\": \"y\" } } }",
        "error: hikite.json:3:3: mcpServers.s: defined twice\nhint: It is also on line 2; keep one.",
    );
}

#[test]
fn a_category_of_an_unknown_server_is_refused() {
    refused(
        "{ \"mcpServers\": { \"serena\": { \"command\": \"x\" } },\n  \"categories\": { \"a\": { \"server\": \"sirena\" }, \"b\": { \"server\": [\"serena\", \"docs\"] }, \"c\": {} } }",
        "
error: hikite.json:2:36: categories.a.server: there is no server `sirena` in `mcpServers`
hint: Did you mean `serena`?
error: hikite.json:2:76: categories.b.server[1]: there is no server `docs` in `mcpServers`
hint: Available servers: `serena`.
error: hikite.json:2:87: categories.c: has no `server`
hint: Available servers: `serena`.",
    );
}

#[test]
fn a_tool_included_twice_is_refused_in_any_spelling() {
    refused(
        &with_tools(
            r#"{ "includeNames": ["a", "b", "a", "mcp__serena__b"], "overrides": { "a": {}, "serena:a": {} } }"#,
        ),
        "
error: hikite.json:3:43: categories.fs.tools.includeNames[2]: `a` is already includeNames[0]
hint: Remove one of them.
error: hikite.json:3:48: categories.fs.tools.includeNames[3]: `mcp__serena__b` is the same tool as `b`, includeNames[1]
hint: Remove one of them.
error: hikite.json:3:91: categories.fs.tools.overrides[\"serena:a\"]: `a` already has an override in another spelling
hint: Merge the two.",
    );
}

#[test]
fn bad_patterns_say_why() {
    refused(
        &with_tools(r#"{ "includePatterns": ["/(/", "ok_*"], "excludePatterns": ["["] }"#),
        "
error: hikite.json:3:36: categories.fs.tools.includePatterns[0]: `/(/` is not a valid regular expression: unclosed group
hint: Write a glob as `read_*` or `{get,list}_*`, and a regular expression as `/^get_/`.
error: hikite.json:3:72: categories.fs.tools.excludePatterns[0]: `[` is not a valid glob: unclosed character class; missing ']'
hint: Write a glob as `read_*` or `{get,list}_*`, and a regular expression as `/^get_/`.",
    );
}

#[test]
fn a_server_has_either_a_command_or_a_url() {
    for (server, expected) in [
        (
            r#"{ "command": "x", "url": "https://x" }"#,
            "error: hikite.json:1:19: mcpServers.s: has both `command` and `url`\nhint: A server is either a program (`command`) or an address (`url`).",
        ),
        (
            "{}",
            "error: hikite.json:1:19: mcpServers.s: has neither `command` nor `url`\nhint: Set `command` to the program to start, or `url` to the address.",
        ),
        (
            r#"{ "type": "http", "command": "x" }"#,
            "error: hikite.json:1:19: mcpServers.s: has `command`, which does not match its `type`\nhint: Leave out `type`, or set `url` instead.",
        ),
        (
            r#"{ "command": "x", "enabled": true, "disabled": true }"#,
            "error: hikite.json:1:71: mcpServers.s.disabled: contradicts `enabled`\nhint: Keep one of them.",
        ),
    ] {
        refused(&with_server(server), expected);
    }
}

#[test]
fn bad_addresses_are_refused_and_credentials_not_repeated() {
    refused(
        &with_server(r#"{ "url": "ftp://x/y?key=abc" }"#),
        "error: hikite.json:1:33: mcpServers.s.url: `ftp://x/y` is neither http nor https\nhint: Write `https://…` or `http://…`.",
    );
    refused(
        &with_server(r#"{ "url": "https://user:pass@x/" }"#),
        "error: hikite.json:1:33: mcpServers.s.url: `https://***@x/` contains credentials\nhint: Put them in `headers`: `\"Authorization\": \"Basic …\"`.",
    );
    refused(
        &with_server(r#"{ "url": "https://x", "headers": { "A B": "x", "C": "é" } }"#),
        "
error: hikite.json:1:59: mcpServers.s.headers[\"A B\"]: is not a valid header name
error: hikite.json:1:71: mcpServers.s.headers.C: contains a character that is not allowed in a header",
    );
}

#[test]
fn bad_amounts_are_refused() {
    refused(
        r#"{ "limits": { "drain": "10 parsecs", "body_bytes": "1 acre", "sessions": 0, "call_timeout": 0 },
  "mcpServers": { "s": { "command": "x", "timeout": "soon", "concurrency": 0, "rate": "10/fortnight" } } }"#,
        "
error: hikite.json:1:24: limits.drain: `10 parsecs` is not a duration
hint: Write `\"10s\"`, `\"500ms\"`, `\"10m\"`, `\"1h\"`, `\"30d\"` or a number of seconds.
error: hikite.json:1:52: limits.body_bytes: `1 acre` is not a size
hint: Write `\"8MiB\"`, `\"64MB\"` or a number of bytes.
error: hikite.json:1:74: limits.sessions: must be greater than zero
hint: Leave it out for the default.
error: hikite.json:1:93: limits.call_timeout: must be greater than zero
hint: Leave it out for the default.
error: hikite.json:2:53: mcpServers.s.timeout: `soon` is not a duration
hint: Write `\"10s\"`, `\"500ms\"`, `\"10m\"`, `\"1h\"`, `\"30d\"` or a number of seconds.
error: hikite.json:2:76: mcpServers.s.concurrency: must be greater than zero
hint: Leave it out for the default.
error: hikite.json:2:87: mcpServers.s.rate: `10/fortnight` is not a rate
hint: Write `10/s`, `600/m` or `5000/h`.",
    );
}

#[test]
fn variables_that_are_not_set_are_named_with_their_place() {
    refused(
        &with_server(
            r#"{ "command": "x", "args": ["${NOPE}", "${NOPE:-ok}", "$${NOPE}"], "env": { "A": "${input:a}", "B": { "file": "no.txt" } } }"#,
        ),
        "
error: hikite.json:1:51: mcpServers.s.args[0]: the environment variable `NOPE` is not set
hint: Set it, or give it a default: `${NOPE:-…}`.
error: hikite.json:1:104: mcpServers.s.env.A: `${input:a}` is not a variable
hint: Write a variable as `${NAME}` or `${NAME:-default}`, and a literal `${` as `$${`.
error: hikite.json:1:133: mcpServers.s.env.B.file: cannot read `conf/no.txt`: entity not found
hint: Relative paths start at the folder of the config file.",
    );
}

#[test]
fn the_server_and_auth_sections_are_checked() {
    refused(
        r#"{ "server": { "listen": "7300", "surface": [], "allowed_hosts": ["https://x"], "allowed_origins": ["x", "https://ok"] },
  "auth": { "token": "${KEY}", "tokenFile": "key.txt" }, "mcpServers": { "a:b": { "command": "x" } } }"#,
        "
error: hikite.json:1:25: server.listen: `7300` is not an address to listen on
hint: Write `127.0.0.1:7300` or `[::1]:7300`.
error: hikite.json:1:33: server.surface: contains no surface
hint: Use one of `categories`, `direct`, `modules`, `search`.
error: hikite.json:1:66: server.allowed_hosts[0]: `https://x` is not a host
hint: Write `example.com` or `example.com:8443`.
error: hikite.json:1:100: server.allowed_origins[0]: `x` is not an origin
hint: Write `https://example.com` without a path.
error: hikite.json:2:32: auth.tokenFile: both `token` and `tokenFile` are given
hint: Keep one of them.
error: hikite.json:2:74: mcpServers[\"a:b\"]: the name of a server must not contain `:`
hint: Letters, digits, `-` and `_` are always allowed.",
    );
}

#[test]
fn a_store_is_a_file_or_a_database_and_its_password_is_hidden() {
    let shown = |text: &str| show(&loaded(text))["store"]["url"].as_str().map(ToOwned::to_owned);
    for (text, expected) in [
        ("{}", "sqlite:/home/me/.local/share/hikite/hikite.db"),
        (r#"{ "data": "here" }"#, "sqlite:conf/here/hikite.db"),
        (r#"{ "store": { "url": "sqlite:x/y.db" } }"#, "sqlite:conf/x/y.db"),
        (r#"{ "store": { "url": "sqlite:~/y.db" } }"#, "sqlite:/home/me/y.db"),
        (r#"{ "store": { "url": "sqlite::memory:" } }"#, "sqlite::memory:"),
        (r#"{ "store": { "url": "postgres://u:${KEY}@h/d" } }"#, "postgres://u:***@h/d"),
    ] {
        assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
    }
    assert!(!format!("{:?}", loaded(r#"{ "store": { "url": "postgres://u:${KEY}@h/d" } }"#)).contains("s3cret"));
    refused(
        r#"{ "store": { "url": "mysql://u:${KEY}@h/d" } }"#,
        "
error: hikite.json:1:21: store.url: The address of a store starts with `sqlite:` or `postgres://`.
hint: Write `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`.",
    );
    refused(
        r#"{ "store": { "url": "sqlite:a", "url_file": "key.txt" } }"#,
        "
error: hikite.json:1:33: store.url_file: both `url` and `url_file` are given
hint: Keep one of them.",
    );
    refused(
        r#"{ "store": { "url_file": "key.txt" } }"#,
        "
error: hikite.json:1:26: store.url_file: The address of a store starts with `sqlite:` or `postgres://`.
hint: Write `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`.",
    );
}

#[test]
fn no_text_makes_it_panic() {
    let example = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite.example.json"));
    for (at, found) in example.char_indices().step_by(131).filter(|(_, found)| *found != ' ') {
        for put in ["", "\"", "[", "}", "${", "0", "null", ":"] {
            let _ = load(&format!("{}{put}{}", &example[..at], &example[at + found.len_utf8()..]));
        }
    }
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let problems = Config::load(Some(Path::new("/nowhere/hikite.json")), &|_| None).expect_err("no file").to_string();
    assert!(problems.starts_with("error: /nowhere/hikite.json: cannot be read: "), "{problems}");
    let env = |name: &str| (name == "HIKITE_CONFIG").then(|| "/elsewhere.json".to_owned());
    assert_eq!(super::find(None, &env).as_deref(), Some(Path::new("/elsewhere.json")));
    assert_eq!(super::find(Some(Path::new("x")), &env).as_deref(), Some(Path::new("x")));
}

#[test]
fn what_is_shown_loads_again() {
    let config = loaded(include_str!("tests/seed-11.jsonc"));
    let again = loaded(&show(&config).to_string());
    assert_eq!(show(&config), show(&again));
}

fn server_with(text: &str, variables: &[(&str, &str)]) -> Result<super::ServerSection, Problems> {
    let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let text = format!("{{ \"server\": {text} }}");
    Config::parse(&text, Path::new("hikite.json"), ConfigEnvironment { env: &env, read: &read })
        .map(|config| config.server)
}

#[test]
fn web_pages_are_let_in_by_the_file_else_by_the_environment() {
    use super::Cors;
    let only = |origins: &[&str]| Cors::Only(origins.iter().map(|origin| (*origin).to_owned()).collect());
    let on = ("CORS_ENABLED", "true");
    let page = ("CORS_ORIGIN", "https://env.example, https://two.example");
    for (text, variables, expected) in [
        ("{}", &[][..], Cors::Off),
        ("{}", &[on], Cors::Any),
        ("{}", &[page], Cors::Off),
        ("{}", &[("CORS_ENABLED", "yes")], Cors::Off),
        ("{}", &[on, page], only(&["https://env.example", "https://two.example"])),
        (r#"{ "cors": { "enabled": false } }"#, &[on], Cors::Off),
        (r#"{ "cors": {} }"#, &[], Cors::Any),
        (r#"{ "cors": { "enabled": true } }"#, &[page], only(&["https://env.example", "https://two.example"])),
        (r#"{ "cors": { "origin": "https://App.example" } }"#, &[page], only(&["https://app.example"])),
        (r#"{ "cors": { "enabled": true, "origin": ["https://a", "*"] } }"#, &[], Cors::Any),
        ("{}", &[on, ("CORS_ORIGIN", "nonsense")], only(&[])),
    ] {
        let server = server_with(text, variables).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(server.cors, expected, "{text} {variables:?}");
    }
    refused(
        r#"{ "server": { "cors": { "origin": ["https://a/b"] } } }"#,
        "error: hikite.json:1:36: server.cors.origin[0]: `https://a/b` is not an origin\nhint: Write `https://example.com` without a path, or `*`.",
    );
}

#[test]
fn the_rate_of_a_caller_has_two_spellings() {
    let window = |max, ms| Some(Rate { count: max, per: Duration::from_millis(ms) });
    for (text, expected) in [
        ("{}", None),
        (r#"{ "rate_limit": "100/m" }"#, window(100, 60_000)),
        (r#"{ "rate_limit": { "max": 5, "timeWindow": 1500 } }"#, window(5, 1500)),
    ] {
        let server = server_with(text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(server.rate, expected, "{text}");
    }
    for wrong in [
        r#"{ "rate_limit": "often" }"#,
        r#"{ "rate_limit": { "max": 0, "timeWindow": 1 } }"#,
        r#"{ "rate_limit": { "max": 1, "timeWindow": 0 } }"#,
        r#"{ "rate_limit": { "max": 1 } }"#,
        r#"{ "rate_limit": { "max": 1, "timeWindow": 86400001 } }"#,
        r#"{ "rate_limit": { "max": 1, "window": 1 } }"#,
    ] {
        assert!(server_with(wrong, &[]).is_err(), "{wrong}");
    }
}

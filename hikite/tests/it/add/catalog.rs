//! The catalog: a local registry with the addresses and members of the published API, and a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{done, entries};
use crate::PROGRAMS;

const NAME: &str = "io.github.example/files";

fn server() -> Value {
    json!({
        "name": NAME, "description": "Reads files.", "version": "1.2.0",
        "repository": { "url": "https://github.com/example/files", "source": "github" },
        "packages": [{ "registryType": "npm", "identifier": "@example/files", "version": "1.2.0",
            "transport": { "type": "stdio" },
            "environmentVariables": [
                { "name": "FILES_KEY", "description": "From the settings page.", "isRequired": true, "isSecret": true },
                { "name": "FILES_DEBUG", "description": "More output." },
            ],
            "packageArguments": [{ "type": "positional", "valueHint": "root", "description": "The folder.", "isRequired": true }] }],
        "remotes": [{ "type": "streamable-http", "url": "https://files.example/mcp" }],
    })
}

#[expect(clippy::disallowed_methods, reason = "the task is awaited by the test")]
/// Starts a registry, and returns its address and the number of requests it got.
async fn registry() -> (String, Arc<AtomicUsize>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut bytes = vec![0; 8192];
            let read = stream.read(&mut bytes).await.unwrap_or_default();
            let head = String::from_utf8_lossy(&bytes[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let answer = json!({ "server": server(), "_meta": {} });
            let (status, body) = if path.starts_with("/v0.1/servers?search=file&") {
                ("200 OK", json!({ "servers": [answer], "metadata": { "count": 1 } }))
            } else if path == "/v0.1/servers/io.github.example%2Ffiles/versions/latest" {
                ("200 OK", answer)
            } else {
                ("404 Not Found", json!({ "error": "Server not found" }))
            };
            let body = body.to_string();
            let reply = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(reply.as_bytes()).await;
        }
    });
    (url, count, serving)
}

#[tokio::test]
async fn servers_are_found_shown_and_added_and_answers_are_cached() {
    let (url, count, serving) = registry().await;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("hikite.json"), json!({ "catalog": { "url": url } }).to_string()).expect("a file");
    let found = done(folder, &["catalog", "search", "file"]).await;
    assert!(found.stdout.contains(NAME) && found.stdout.contains("Reads files."), "{found:?}");
    let shown = done(folder, &["catalog", "show", NAME]).await;
    for part in [
        "npm @example/files@1.2.0",
        "variable FILES_KEY, required (secret): From the settings page.",
        "variable FILES_DEBUG, optional",
        "argument root, required",
        "remote https://files.example/mcp",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let raw = done(folder, &["catalog", "show", NAME, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&raw.stdout).expect("JSON"), server());
    let unknown = PROGRAMS.run(folder, &["catalog", "show", "nobody/nothing"]).await;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("There is no server `nobody/nothing`"), "{unknown:?}");

    let add = ["add", "--from", NAME, "--package", "npm", "--no-check"];
    let refused = PROGRAMS.run(folder, &add).await;
    assert!(refused.code == Some(1), "{refused:?}");
    for part in ["--env FILES_KEY=… (secret): From the settings page.", "-- … root: The folder."] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    let more = ["--env", "FILES_KEY", "--", "/srv"];
    let added = done(folder, &[&add[..], &more[..]].concat()).await;
    assert!(added.stderr.contains("It runs `npx -y @example/files@1.2.0 /srv`."), "{added:?}");
    let entry = json!({ "command": "npx", "args": ["-y", "@example/files@1.2.0", "/srv"],
        "env": { "FILES_KEY": "${FILES_KEY}" }, "description": "Reads files." });
    assert_eq!(entries(folder)["files"], entry);
    done(folder, &["add", "far", "--from", NAME, "--package", "remote", "--no-check"]).await;
    assert_eq!(entries(folder)["far"]["url"], "https://files.example/mcp");

    let asked = count.load(Ordering::Relaxed);
    assert_eq!(asked, 3, "one search, one server, one that is unknown");
    serving.abort();
    let cached = done(folder, &["catalog", "search", "file", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&cached.stdout).expect("JSON"), json!([server()]));
    let away = PROGRAMS.run(folder, &["catalog", "search", "other"]).await;
    assert!(away.code == Some(1) && away.stderr.contains("the catalog cannot be reached"), "{away:?}");
}

#[tokio::test]
async fn a_file_can_be_the_catalog() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("catalog.json"), json!({ "servers": [{ "server": server() }] }).to_string())
        .expect("a file");
    std::fs::write(folder.join("hikite.json"), json!({ "catalog": { "file": "catalog.json" } }).to_string())
        .expect("a file");
    assert!(done(folder, &["catalog", "search", "FILE"]).await.stdout.contains(NAME));
    assert!(
        done(folder, &["catalog", "show", NAME]).await.stdout.contains("repository: https://github.com/example/files")
    );
}

//! Built-in TLS, tested with an independent client: Python's `ssl`. The certificates below `tls/` are for these tests
//! only; `ca.pem` signed `one` and `two`, and `alone` is self-signed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use hikite_testkit::gateway::{LIMIT, TestGateway, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{PROGRAMS, configured};

const ASK: &str = r#"
import json, socket, ssl, sys
port, ca, oldest, newest = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.minimum_version, context.maximum_version = (getattr(ssl.TLSVersion, v) for v in (oldest, newest))
context.set_alpn_protocols(["h2", "http/1.1"])
try:
    with socket.create_connection(("127.0.0.1", int(port)), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as tls:
            tls.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while part := tls.recv(65536):
                answer += part
            name = dict(pair[0] for pair in tls.getpeercert()["subject"])["commonName"]
            print(json.dumps({"version": tls.version(), "alpn": tls.selected_alpn_protocol(),
                              "status": int(answer.split()[1]), "name": name}))
except ssl.SSLError as error:
    print(json.dumps({"refused": error.reason}))
"#;

fn file(name: &str) -> String {
    format!("{}/tests/it/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn tls(certificate: &str, key: &str) -> Value {
    json!({ "cert_file": file(certificate), "key_file": file(key) })
}

fn server(tls: &Value) -> Value {
    json!({ "server": { "tls": tls } })
}

/// Returns the results of a client with these TLS versions and this CA.
async fn ask(address: SocketAddr, authority: &str, (oldest, newest): (&str, &str)) -> Value {
    let port = address.port().to_string();
    let mut command = Command::new("python3");
    command.args(["-c", ASK, &port, &file(authority), oldest, newest]);
    let output = tokio::task::spawn_blocking(move || command.output().expect("python3")).await.expect("it ran");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

const ANY: (&str, &str) = ("TLSv1_2", "TLSv1_3");
const OLD: (&str, &str) = ("TLSv1_2", "TLSv1_2");

#[tokio::test]
async fn a_client_of_today_is_answered_and_an_old_one_only_if_the_owner_says_so() {
    let gateway = configured(server(&tls("one.pem", "one.key"))).await;
    gateway.wait_for_stderr("listening on https://127.0.0.1:").await;
    let told = ask(gateway.address(), "ca.pem", ANY).await;
    assert_eq!(told, json!({ "version": "TLSv1.3", "alpn": "http/1.1", "status": 200, "name": "one" }));
    let refused = ask(gateway.address(), "ca.pem", OLD).await;
    assert_eq!(refused["refused"], "TLSV1_ALERT_PROTOCOL_VERSION", "{refused}");
    let foreign = ask(gateway.address(), "alone.pem", ANY).await;
    assert_eq!(foreign["refused"], "CERTIFICATE_VERIFY_FAILED", "the client looks at the certificate");

    let mut old = tls("one.pem", "one.key");
    old["min_version"] = "1.2".into();
    gateway.write_config(&server(&old));
    gateway.wait_for_stderr("the changed config is active").await;
    let told = ask(gateway.address(), "ca.pem", OLD).await;
    assert_eq!((&told["version"], &told["status"]), (&json!("TLSv1.2"), &json!(200)));
}

#[tokio::test]
async fn a_changed_certificate_is_shown_without_a_restart_and_a_wrong_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |from: &str, to: &str| {
        let beside = folder.path().join("new");
        std::fs::copy(file(from), &beside).expect("copied");
        std::fs::rename(beside, folder.path().join(to)).expect("renamed");
    };
    put("one.pem", "cert.pem");
    put("one.key", "key.pem");
    let path = |name: &str| folder.path().join(name);
    let tls = json!({ "cert_file": path("cert.pem"), "key_file": path("key.pem") });
    let gateway = configured(server(&tls)).await;
    let mut open = TcpStream::connect(gateway.address()).await.expect("a connection");
    put("two.pem", "cert.pem");
    gateway.wait_for_stderr("the changed certificate is invalid; the previous one stays active").await;
    assert!(gateway.stderr().contains("is not the key of the certificate"), "{}", gateway.stderr());
    assert_eq!(ask(gateway.address(), "ca.pem", ANY).await["name"], "one");
    put("two.key", "key.pem");
    gateway.wait_for_stderr("the changed certificate is active").await;
    assert_eq!(ask(gateway.address(), "ca.pem", ANY).await["name"], "two");
    open.shutdown().await.expect("whoever was there before is not cut off");
}

#[tokio::test]
async fn wrong_files_are_told_and_nothing_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let gateway = configured(json!({})).await;
    for (certificate, key, told) in [
        ("gone.pem", "one.key", "error: `server.tls.cert_file`: cannot read"),
        ("one.pem", "gone.key", "error: `server.tls.key_file`: cannot read"),
        ("one.key", "one.key", "contains no certificate in PEM format"),
        ("one.pem", "one.pem", "contains no private key in PEM format"),
        ("one.pem", "two.key", "two.key` is not the key of the certificate"),
    ] {
        write(folder.path(), &server(&tls(certificate, key)));
        let run = run(&gateway, folder.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
        assert_eq!(run.0, Some(2), "{certificate} {key}: {}", run.1);
        assert!(run.1.contains(told), "{certificate} {key}: {}", run.1);
    }
    let half = json!({ "server": { "tls": { "cert_file": file("one.pem") } } });
    write(folder.path(), &half);
    let run = run(&gateway, folder.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(run.0 == Some(2) && run.1.contains("key_file"), "{}", run.1);
}

fn write(folder: &Path, config: &Value) {
    std::fs::write(folder.join("wrong.json"), config.to_string()).expect("a file");
}

async fn run(gateway: &TestGateway, folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let config = folder.join("wrong.json").display().to_string();
    let run = gateway.run(&[arguments, &["--config", &config]].concat()).await;
    (run.code, run.stderr)
}

#[tokio::test]
async fn plain_http_and_silence_do_not_block_the_listener() {
    let config = json!({ "server": { "tls": tls("one.pem", "one.key") }, "limits": { "header_timeout": "500ms" } });
    let gateway = configured(config).await;
    let read = async |first: &[u8]| {
        let mut stream = TcpStream::connect(gateway.address()).await.expect("a connection");
        stream.write_all(first).await.expect("sent");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut answer)).await;
        // Reset or closed: either way it is over.
        let _ = read.expect("an end in time");
        answer
    };
    let answer = read(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(!answer.starts_with(b"HTTP/"), "nothing is said in the open");
    assert!(read(b"").await.is_empty(), "silence");
    assert!(read(&[0x16, 0x03, 0x01, 0x02]).await.is_empty(), "a greeting that does not go on");
}

#[tokio::test]
async fn a_command_on_this_machine_believes_the_certificate_of_the_config_and_no_other() {
    let gateway = configured(server(&tls("alone.pem", "alone.key"))).await;
    let listen = gateway.address().to_string();
    let well = gateway.run(&["health", "--listen", &listen]).await;
    assert_eq!((well.code, well.stdout.trim()), (Some(0), "ok"), "{}", well.stderr);
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &server(&tls("one.pem", "one.key")));
    let (code, told) = run(&gateway, folder.path(), &["health", "--listen", &listen]).await;
    assert!(code == Some(1) && told.contains("invalid peer certificate"), "{told}");
}

#[tokio::test]
async fn with_a_certificate_others_may_connect_and_the_snippets_say_https() {
    let mut config = server(&tls("one.pem", "one.key"));
    config["server"]["listen"] = "0.0.0.0:0".into();
    config["data"] = "data".into();
    let gateway = TestGateway::start_by_file(&PROGRAMS, config).await;
    let port = gateway.address().port();
    assert!(eventually(|| gateway.stderr().contains(&format!("https://127.0.0.1:{port}/mcp"))).await);
    assert_eq!(ask(gateway.address(), "ca.pem", ANY).await["status"], 200);
}

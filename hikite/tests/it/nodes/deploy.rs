//! The deployment manifests, checked against the program: everything they name exists, and their config is valid.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hikite_testkit::gateway::HttpRequest;
use serde_json::Value;

use crate::PROGRAMS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder").to_owned()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Parses the documents of a YAML file.
fn documents(path: &str) -> Vec<Value> {
    let text = text(path);
    let read = |part: &str| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("\n---\n").map(read).collect()
}

/// Collects all strings of a document.
fn strings(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, all)),
        Value::Object(members) => {
            all.extend(members.keys().cloned());
            members.values().for_each(|member| strings(member, all));
        }
        _ => {}
    }
}

/// Returns the `HIKITE_` names in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.len() > "HIKITE_".len());
    words.filter(|word| word.starts_with("HIKITE_")).map(ToOwned::to_owned).collect()
}

/// Returns the source of the program as one text.
fn source(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| match path.extension().and_then(|kind| kind.to_str()) {
        None => source(&path),
        Some("rs") => std::fs::read_to_string(&path).expect("a file"),
        Some(_) => String::new(),
    };
    entries.map(read).collect()
}

/// Asserts that the program accepts the text as a config.
async fn check(config: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let secrets = folder.path().join("secret");
    std::fs::create_dir(&secrets).expect("a folder");
    for (name, value) in [("store-url", "postgres://hikite:x@localhost/hikite"), ("token", "a-token-of-some-length")] {
        std::fs::write(secrets.join(name), value).expect("a file");
    }
    let config = config
        .replace("/etc/hikite-secret", secrets.to_str().expect("UTF-8"))
        .replace("${POSTGRES_PASSWORD}", "x")
        .replace("${HIKITE_TOKEN}", "a-token-of-some-length");
    std::fs::write(folder.path().join("hikite.json"), config).expect("a file");
    let run = PROGRAMS.run(folder.path(), &["config", "check"]).await;
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
}

#[tokio::test]
async fn the_configs_of_the_manifests_are_right() {
    check(&text("deploy/hikite.json")).await;
    let all = documents("deploy/kubernetes.yaml");
    let config = all.iter().find_map(|document| document["data"]["hikite.json"].as_str());
    check(config.expect("a config in the manifest")).await;
}

#[test]
fn every_variable_of_the_manifests_is_one_of_the_program() {
    let known = names(&(source(&root().join("hikite/src")) + &source(&root().join("hikite-config/src"))));
    let of_configs = names(&text("deploy/hikite.json"));
    // The machine's name, which only the load balancer reads.
    let of_others = names(&text("deploy/Caddyfile"));
    for path in ["compose.yaml", "deploy/kubernetes.yaml"] {
        let mut all = Vec::new();
        for document in documents(path) {
            strings(&document, &mut all);
        }
        let named = names(&all.join(" "));
        assert!(named.contains("HIKITE_NODE_URL") && named.contains("HIKITE_VAULT_KEY"), "{path}: {named:?}");
        for name in named {
            let is_known = [&known, &of_configs, &of_others].iter().any(|names| names.contains(&name));
            assert!(is_known, "{path} names {name}");
        }
    }
}

#[tokio::test]
async fn what_the_manifests_lead_to_is_there() {
    let gateway = crate::gateway(serde_json::json!({})).await;
    let all = documents("deploy/kubernetes.yaml");
    let kinds: Vec<&str> = all.iter().filter_map(|document| document["kind"].as_str()).collect();
    assert_eq!(kinds, ["ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"]);
    let pod = &all[1]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let asked = &container[probe]["httpGet"];
        let path = asked["path"].as_str().unwrap_or_else(|| panic!("{probe}"));
        assert_eq!(HttpRequest::new("GET", path).send(gateway.address()).await.status, 200, "{probe} {path}");
        assert_eq!(asked["port"], container["ports"][0]["name"], "{probe}");
    }
    let caddy = text("deploy/Caddyfile");
    let path = caddy.split("health_uri ").nth(1).and_then(|rest| rest.split_whitespace().next());
    assert_eq!(HttpRequest::new("GET", path.expect("a path")).send(gateway.address()).await.status, 200);
    let compose = &documents("compose.yaml")[0];
    let upstreams = caddy.split("reverse_proxy ").nth(1).and_then(|rest| rest.split(" {").next());
    for upstream in upstreams.expect("nodes").split_whitespace() {
        let (node, port) = upstream.split_once(':').expect("a port");
        assert_eq!(port, "7300");
        let address = &compose["services"][node]["environment"]["HIKITE_NODE_URL"];
        assert_eq!(address, &format!("http://{upstream}"), "{node}");
    }
    assert!(pod["securityContext"]["runAsNonRoot"] == true && pod["securityContext"]["runAsUser"] == 65532);
    assert!(text("Dockerfile").contains("USER 65532:65532") && text("Dockerfile").contains("EXPOSE 7300"));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert!(pod["affinity"]["podAntiAffinity"].is_object());
    assert_eq!(all[4]["spec"]["ingress"][0]["ports"][0]["port"], container["ports"][0]["name"]);
    let local = &compose["services"]["local"];
    let url = local["environment"]["HIKITE_PUBLIC_URL"].as_str().unwrap_or_default();
    let port = url.strip_prefix("http://localhost:").expect("a loopback address");
    assert_eq!(local["ports"][0], format!("127.0.0.1:{port}:7300"), "others cannot reach it");
    assert_eq!(container["ports"][0]["containerPort"], 7300);
    for path in ["deploy/hikite.json", "deploy/Caddyfile"] {
        assert!(text("compose.yaml").contains(&format!("./{path}:")), "{path} is used");
    }
}

//! Tests of `model/ready.bin`: vectors of the tools of public servers, computed from their recorded lists, and of the
//! built-in services in both languages. `cargo xtask vectors` rewrites it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hikite_core::credential::{Credential, CredentialProvider};
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::search::ToolDocument;
use hikite_core::search::document::parameters;
use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::source::{BoxFuture, CallContext, Source};
use hikite_modules::{BUILTIN, Service, ServiceSettings, TextLanguage};
use serde_json::Value;

use crate::precomputed::{ContentHash, content, parts};
use crate::{DIMENSION, SentenceEncoder};

/// Step between the tools that the test checks.
const STRIDE: usize = 20;

#[test]
fn the_vectors_that_are_shipped_are_those_of_the_tools() {
    let documents = documents();
    assert!(documents.len() > 500, "{} tools", documents.len());
    let encoder = SentenceEncoder::new();
    if std::env::var_os("HIKITE_UPDATE").is_some() {
        let vector =
            |document: &ToolDocument| (content(document.content()).expect("a hash"), encoder.tool(&document.text()));
        let bytes = write(&documents.iter().map(vector).collect());
        std::fs::write(folder("model").join("ready.bin"), bytes).expect("a file");
        return;
    }
    for document in documents.iter().step_by(STRIDE) {
        let text = document.text();
        let Some(ready) = encoder.ready(document.content()) else {
            panic!("ready.bin is stale, run `cargo xtask vectors`: nothing for {text:?}");
        };
        // Not bit-identical: processors round sums differently.
        let similarity = ready.similarity(&encoder.tool(&text));
        assert!(similarity > 0.999, "ready.bin is stale, run `cargo xtask vectors`: {similarity} for {text:?}");
    }
}

#[test]
fn what_is_written_is_read_in_the_order_of_its_contents() {
    let vector = |value: f32| Vector::of(&[[value; 1].as_slice(), &[1.0; DIMENSION - 1]].concat());
    let bytes = write(&BTreeMap::from([([3; 16], vector(3.0)), ([1; 16], vector(1.0)), ([2; 16], vector(2.0))]));
    let (contents, vectors) = parts(&bytes);
    assert_eq!(contents, [[1; 16], [2; 16], [3; 16]]);
    assert_eq!(vectors.iter().map(|vector| vector[1]).collect::<Vec<_>>(), [127, 64, 42]);
}

fn write(vectors: &BTreeMap<ContentHash, Vector>) -> Vec<u8> {
    let numbers = vectors.values().flat_map(|vector| vector.bytes().iter().map(|byte| byte.cast_unsigned()));
    vectors.keys().flatten().copied().chain(numbers).collect()
}

fn documents() -> Vec<ToolDocument> {
    let lists = std::fs::read_dir(folder("../hikite-testkit/fixtures/toolsets")).expect("recorded lists");
    let mut lists: Vec<PathBuf> = lists.map(|list| list.expect("a file").path()).collect();
    lists.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    lists.sort();
    let languages = [TextLanguage::English, TextLanguage::Japanese];
    let services = BUILTIN.iter().flat_map(|(_, file)| languages.map(|language| service(file, language)));
    lists.iter().map(|path| recorded(path)).chain(services).flatten().collect()
}

fn recorded(path: &Path) -> Vec<ToolDocument> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let module = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    list["tools"].as_array().expect("tools").iter().map(|tool| document(module, tool)).collect()
}

fn service(file: &str, language: TextLanguage) -> Vec<ToolDocument> {
    let settings = ServiceSettings {
        client: hikite_egress::EgressClient::new(),
        credential_provider: Arc::new(NoAccounts),
        limits: Arc::default(),
        language,
    };
    let service = Service::read(file, &settings).expect("a service");
    let listing = service.listing().expect("a list");
    listing.tools.iter().map(|tool| document(&service.name, &tool.raw.value())).collect()
}

fn document(module: &str, tool: &Value) -> ToolDocument {
    let name = tool["name"].as_str().expect("a name");
    let description = tool["description"].as_str().unwrap_or_default();
    let parameters = parameters(&Raw::of(&tool["inputSchema"]));
    ToolDocument::new(ToolKey::new(module, name), name, "", description, parameters)
}

#[derive(Debug)]
struct NoAccounts;

impl CredentialProvider for NoAccounts {
    fn knows(&self, _: &str) -> bool {
        false
    }

    fn credential<'a>(
        &'a self,
        _: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn renewed<'a>(
        &'a self,
        _: &'a str,
        _: &'a Credential,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

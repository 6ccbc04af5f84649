//! Tests of `model/ready.bin`: vectors of the tools of public servers, computed from their recorded lists.
//! `cargo xtask vectors` rewrites it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hikite_core::key::ToolKey;
use hikite_core::search::ToolDocument;
use hikite_core::search::encoder::{Encoder, Vector};
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
    lists.iter().flat_map(|path| tools(path)).collect()
}

fn tools(path: &Path) -> Vec<ToolDocument> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let module = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let document = |tool: &Value| {
        let name = tool["name"].as_str().expect("a name");
        let description = tool["description"].as_str().unwrap_or_default();
        ToolDocument::new(ToolKey::new(module, name), name, "", description, Vec::new())
    };
    list["tools"].as_array().expect("tools").iter().map(document).collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

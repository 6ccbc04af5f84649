//! Search among invented tools: what it costs to build the index, to ask it by words, and to ask it by words and
//! meaning when the question's vector is already there.

use hikite_core::key::ToolKey;
use hikite_core::search::encoder::Vector;
use hikite_core::search::{SearchIndex, SearchQuery, ToolDocument};
use hikite_core::tool_set::ToolSet;
use serde_json::{Value, json};

use crate::timer::Timer;

const VERBS: &[&str] =
    &["create", "list", "update", "delete", "search", "export", "archive", "share", "rename", "count"];
const THINGS: &[&str] = &[
    "issue",
    "invoice",
    "calendar event",
    "repository",
    "branch",
    "page",
    "database row",
    "message",
    "channel",
    "customer",
    "order",
    "ticket",
    "file",
    "folder",
    "report",
    "dashboard",
    "alert",
    "job",
];
const PLACES: &[&str] = &["project", "workspace", "account", "team", "region", "archive", "inbox", "warehouse"];
const PARAMETERS: &[&str] = &["owner", "limit", "cursor", "fields", "since", "title", "labels", "format"];
/// As many as the encoder's vectors have.
const DIMENSION: u32 = 512;

pub(crate) fn rows(timer: Timer) -> Vec<Value> {
    [500, 1_000, 10_000, 17_000].into_iter().map(|count| row(timer, count)).collect()
}

fn row(timer: Timer, count: usize) -> Value {
    let documents: Vec<ToolDocument> = (0..count).map(document).collect();
    let build = timer.nanoseconds(|| SearchIndex::build(documents.clone(), None).len());
    let copy = timer.nanoseconds(|| documents.clone().len());
    let vectors = (0..count).map(|at| (at, vector(at))).collect();
    let index = SearchIndex::build(documents, None).with_vectors("invented", vectors);
    let mask = ToolSet::all(count);
    let queries = ["Export every overdue invoice of the customer as a report".to_owned()];
    let words = SearchQuery::lexical(&queries, None);
    assert_eq!(index.search(&words, &mask, &[], 10).len(), 10);
    let by_words = timer.nanoseconds(|| index.search(&SearchQuery::lexical(&queries, None), &mask, &[], 10).len());
    let meaning = SearchQuery::lexical(&queries, None).with_vectors(vec![vector(7)]);
    assert!(index.search(&meaning, &mask, &[], 10)[0].explanation.contains("semantic similarity"));
    let by_meaning = timer.nanoseconds(|| index.search(&meaning, &mask, &[], 10).len());
    json!([count, (build - copy) / 1e6, by_words / 1e3, by_meaning / 1e3])
}

fn document(at: usize) -> ToolDocument {
    let pick = |words: &[&'static str], step: usize| words[(at * 7919 + at / 13 * step) % words.len()];
    let (verb, thing, place) = (pick(VERBS, 3), pick(THINGS, 5), pick(PLACES, 11));
    let name = format!("{verb}_{}_{at}", thing.replace(' ', "_"));
    let description = format!(
        "{verb} one {thing} of a {place} and give it back with its number {at}. Use this when somebody asks for the \
         {thing} by name; {} is optional, results are sorted by date and come in pages of fifty.",
        pick(PARAMETERS, 17)
    );
    let parameters = (0..4).map(|step| {
        let name = PARAMETERS[(at + step) % PARAMETERS.len()];
        (name.to_owned(), format!("The {name} of the {thing} in the {place}"))
    });
    let key = ToolKey::new(format!("service-{}", at / 25), name.as_str());
    ToolDocument::new(key, name, "Tools of an invented service", description, parameters.collect())
}

/// In no direction that means anything.
fn vector(at: usize) -> Vector {
    let mut state = u32::try_from(at).expect("few").wrapping_mul(2_654_435_761).wrapping_add(1);
    let values = (0..DIMENSION).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(i16::from_ne_bytes([state.to_be_bytes()[0], state.to_be_bytes()[1]]))
    });
    Vector::of(&values.collect::<Vec<_>>())
}

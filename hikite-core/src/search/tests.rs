//! Tests of searches over small catalogs with obvious answers.

use super::encoder::{Encoder, Vector};
use super::{SearchHit, SearchIndex, SearchQuery, ToolDocument, UsageTrace};
use crate::key::ToolKey;
use crate::tool_set::ToolSet;

fn tool(module: &str, name: &str, description: &str) -> ToolDocument {
    ToolDocument::new(ToolKey::new(module, name), name, "", description, Vec::new())
}

fn catalog() -> Vec<ToolDocument> {
    vec![
        tool("github", "list_issues", "List the issues of a repository"),
        tool("files", "readFile", "Reads a file from the disk"),
        tool("github", "create_issue", "Creates one issue"),
        tool("files", "write_file", "Writes text to a file on the disk"),
        tool("weather", "forecast", "Tells the weather of the next days"),
        tool("文書", "search_docs", "大きなファイルを検索する"),
    ]
}

/// A test encoder in which each of a few keywords is its own dimension, in any language.
#[derive(Debug)]
struct KeywordEncoder;

const MEANINGS: [&[&str]; 4] = [&["issue", "課題"], &["file", "ファイル"], &["weather", "天気"], &["write", "書"]];

impl Encoder for KeywordEncoder {
    fn model(&self) -> &'static str {
        "agreed"
    }

    fn question(&self, text: &str) -> Vector {
        let text = text.to_lowercase();
        let means = |words: &&[&str]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.05 };
        Vector::of(&MEANINGS.iter().map(means).collect::<Vec<f32>>())
    }

    fn tool(&self, text: &str) -> Vector {
        self.question(text)
    }
}

fn encoded(documents: Vec<ToolDocument>) -> SearchIndex {
    let index = SearchIndex::build(documents, None);
    let vectors = index.without_vector().into_iter().map(|at| (at, KeywordEncoder.tool(&index.document(at).text())));
    index.with_vectors("agreed", vectors.collect())
}

fn ask(index: &SearchIndex, queries: &[&str], context: Option<&str>) -> Vec<SearchHit> {
    let queries: Vec<String> = queries.iter().map(|query| (*query).to_owned()).collect();
    let question = if index.encoded() > 0 {
        SearchQuery::hybrid(&queries, context, &KeywordEncoder)
    } else {
        SearchQuery::lexical(&queries, context)
    };
    index.search(&question, &ToolSet::all(index.len()), &[], 10)
}

fn places(hits: &[SearchHit]) -> Vec<usize> {
    hits.iter().map(|hit| hit.at).collect()
}

#[test]
fn the_tool_that_names_the_words_comes_first() {
    let index = SearchIndex::build(catalog(), None);
    assert_eq!(places(&ask(&index, &["create issues"], None)), [2, 0]);
    assert_eq!(places(&ask(&index, &["reading"], None)), [1]);
    assert_eq!(places(&ask(&index, &["ファイルを検索"], None)), [5]);
    assert!(ask(&index, &["stock market"], None).is_empty());
    assert!(ask(&index, &["", " "], None).is_empty());
}

#[test]
fn what_the_mask_does_not_hold_is_never_found_and_changes_nothing() {
    let question = SearchQuery::hybrid(&["create an issue".to_owned()], None, &KeywordEncoder);
    let index = encoded(catalog());
    let visible = ToolSet::from_fn(index.len(), |at| at != 2);
    let trace = UsageTrace { document: 2, terms: question.terms(), vector: None, weight: 1.0 };
    let hits = index.search(&question, &visible, &[trace], 10);
    assert!(!places(&hits).contains(&2), "{hits:?}");
    let order = places(&index.search(&question, &visible, &[], 10));
    assert_eq!(places(&hits), order);
    let named = SearchQuery::lexical(&["github:create_issue".to_owned()], None);
    assert!(!places(&index.search(&named, &visible, &[], 10)).contains(&2));
    assert!(index.search(&question, &ToolSet::none(index.len()), &[], 10).is_empty());
}

#[test]
fn meaning_finds_what_words_do_not() {
    let index = encoded(catalog());
    let hits = ask(&index, &["明日の天気は?"], None);
    assert_eq!(hits[0].at, 4);
    assert_eq!(hits[0].explanation, "semantic similarity 1.00");
    assert!(hits[0].relevance > 0.9 && hits[1].relevance < 0.3, "{hits:?}");
}

#[test]
fn a_tool_that_is_named_comes_first() {
    let index = encoded(catalog());
    for query in ["readFile", "github:create_issue weather", "use write_file for the weather of the issue"] {
        let hits = ask(&index, &[query], None);
        assert!((hits[0].relevance - 1.0).abs() < 1e-9, "{query}: {hits:?}");
        assert!(hits[0].explanation.starts_with("named in the query"), "{query}: {hits:?}");
    }
    assert_eq!(ask(&index, &["use write_file for the weather of the issue"], None)[0].at, 3);
    assert_eq!(ask(&index, &["weather__forecast"], None)[0].at, 4);
    // In a sentence, a plain word does not count as a tool name.
    assert_eq!(ask(&index, &["the forecast is in which file on disk"], None)[0].at, 1);
}

#[test]
fn relevance_says_how_much_speaks_for_a_hit() {
    let index = SearchIndex::build(catalog(), None);
    let good = ask(&index, &["forecast weather"], None);
    let poor = ask(&index, &["how do I bake bread for ten guests with a disk of dough and some salt"], None);
    assert!(good[0].relevance > 0.6, "{good:?}");
    assert!(poor[0].relevance < 0.25, "{poor:?}");
    assert!(good.iter().chain(&poor).all(|hit| (0.0..=1.0).contains(&hit.relevance)));
    assert!(good.is_sorted_by(|a, b| a.relevance >= b.relevance));
}

#[test]
fn the_explanation_names_the_words_and_where_they_stand() {
    let index = SearchIndex::build(catalog(), None);
    let hits = ask(&index, &["create an issue in the github repository"], None);
    assert_eq!(hits[0].explanation, "name: create, issue; module: github");
    assert_eq!(hits[1].explanation, "name: issue; module: github; description: repository");
}

#[test]
fn of_several_queries_the_best_counts_most() {
    let index = SearchIndex::build(catalog(), None);
    let hits = ask(&index, &["create issue", "weather forecast"], None);
    assert!(places(&hits)[..2].contains(&2) && places(&hits)[..2].contains(&4), "{hits:?}");
}

#[test]
fn the_context_tips_the_scales() {
    let index = SearchIndex::build(catalog(), None);
    assert_eq!(ask(&index, &["file"], Some("I want to write some text"))[0].at, 3);
    assert_eq!(ask(&index, &["file"], Some("I am reading a book"))[0].at, 1);
    assert_eq!(ask(&index, &["weather"], Some("github issues"))[0].at, 4);
}

#[test]
fn equals_stand_in_the_order_of_the_catalog() {
    let index = SearchIndex::build(vec![tool("a", "same", "x y"), tool("b", "same", "x y"), tool("c", "z", "x")], None);
    let first = ask(&index, &["same"], None);
    assert_eq!(places(&first), [0, 1]);
    assert_eq!(first, ask(&index, &["same"], None));
}

#[test]
fn a_tool_whose_vector_is_not_made_yet_still_takes_part() {
    let index = SearchIndex::build(catalog(), None);
    let vectors = [0, 3, 4].map(|at| (at, KeywordEncoder.tool(&index.document(at).text())));
    let index = index.with_vectors("agreed", vectors.to_vec());
    assert_eq!((index.encoded(), index.without_vector()), (3, vec![1, 2, 5]));
    assert_eq!(ask(&index, &["create one issue"], None)[0].at, 2);
    assert_eq!(ask(&index, &["天気"], None)[0].at, 4);
}

#[test]
fn what_did_not_change_keeps_its_vector() {
    let before = encoded(catalog());
    let mut documents = catalog();
    documents[1] = tool("files", "readFile", "Reads a whole file from the disk");
    documents.remove(0);
    let after = SearchIndex::build(documents, Some(&before));
    assert_eq!((after.without_vector(), after.model()), (vec![0], "agreed"));
    assert_eq!(ask(&after, &["天気"], None)[0].at, 3);
    let other = after.with_vectors("other", vec![(0, Vector::of(&[1.0, 2.0]))]);
    assert_eq!((other.encoded(), other.model()), (1, "other"));
}

#[test]
fn what_was_used_before_comes_up_again() {
    let index = SearchIndex::build(catalog(), None);
    let asked = |text: &str| SearchQuery::lexical(&[text.to_owned()], None);
    let trace = UsageTrace { document: 3, terms: asked("save my notes").terms(), vector: None, weight: 1.0 };
    let search = |text: &str| index.search(&asked(text), &ToolSet::all(6), std::slice::from_ref(&trace), 10);
    let hits = search("please save the notes");
    assert_eq!(hits[0].at, 3);
    assert_eq!(hits[0].explanation, "used before for a similar query");
    assert!(hits[0].relevance > 0.5, "{hits:?}");
    // Unrelated queries are not affected.
    assert_eq!(search("create issue"), index.search(&asked("create issue"), &ToolSet::all(6), &[], 10));
    let old = UsageTrace { weight: 0.0, ..trace.clone() };
    assert!(index.search(&asked("save notes"), &ToolSet::all(6), &[old], 10).is_empty());
    let gone = UsageTrace { document: 99, ..trace.clone() };
    assert!(index.search(&asked("save notes"), &ToolSet::all(6), &[gone], 10).is_empty());
}

/// Returns a catalog with a server whose 60 tools all mention issues, and others with one `export_issue` among them.
fn one_server_about_issues() -> Vec<ToolDocument> {
    let verbs = ["assign", "rank", "move", "watch", "vote", "label"];
    let nouns = ["sprint", "board", "epic", "version", "screen", "field", "scheme", "filter", "status", "link"];
    let mentioning = verbs.iter().flat_map(|verb| nouns.map(|noun| format!("{verb}_{noun}"))).map(|name| {
        let parameter = ("issueIdOrKey".to_owned(), "Id or key of the issue".to_owned());
        ToolDocument::new(ToolKey::new("tracker", &*name), &*name, "", "Changes an issue", vec![parameter])
    });
    let others = (0..15 * 60).map(|at| {
        let (module, verb) = (format!("service{}", at / 60), if at % 60 == 0 { "export" } else { "list" });
        tool(&module, &format!("{verb}_thing{}", at % 60), "Reads something of this service")
    });
    let named = tool("service0", "export_issue", "Reads one as a document");
    mentioning.chain(others).chain([named]).collect()
}

#[test]
fn a_server_about_one_word_does_not_lift_its_tools_above_the_tool_that_both_words_name() {
    for index in [SearchIndex::build(one_server_about_issues(), None), encoded(one_server_about_issues())] {
        for query in ["export issue", "make an export of an issue"] {
            let hits = ask(&index, &[query], None);
            assert_eq!(hits[0].at, index.len() - 1, "{query}: {:?}", &hits[..3]);
        }
    }
}

#[test]
fn values_of_the_query_are_not_matched_with_names() {
    let mut documents = catalog();
    documents.push(tool("report", "quarterly_report_17", "Does something else"));
    let index = SearchIndex::build(documents, None);
    for query in
        ["write 'Quarterly report' to a file", "write report-17 to a file", "write /quarterly/report to a file"]
    {
        let hits = ask(&index, &[query], None);
        assert!(hits[0].at == 3 && !places(&hits).contains(&6), "{query}: {hits:?}");
    }
    assert_eq!(places(&ask(&index, &["\"quarterly\""], None)), [6], "there is nothing else to search for");
}

#[test]
fn an_abbreviation_finds_the_word_and_the_word_the_abbreviation() {
    let index = SearchIndex::build(
        vec![
            tool("git", "create_merge_request", "Opens one"),
            tool("git", "list_repos", "Shows all"),
            tool("disk", "make_directory", "Makes one"),
            tool("disk", "folder_size", "Measures one"),
        ],
        None,
    );
    assert_eq!(places(&ask(&index, &["open mr"], None)), [0]);
    assert_eq!(places(&ask(&index, &["repository"], None)), [1]);
    assert_eq!(places(&ask(&index, &["folder"], None)), [3, 2], "the word itself weighs more");
    let terms = |text: &str| SearchQuery::lexical(&[text.to_owned()], None).terms().len();
    assert_eq!(terms("open mr"), 2, "synonyms are not remembered");
}

//! Generates `docs/search.md` from measurements on the labelled sets. `HIKITE_UPDATE=1 cargo test --workspace --lib
//! evaluation` rewrites it; without the variable, the tests compare its numbers and the required minimums with a new
//! measurement.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use hikite_core::search::encoder::{Encoder, Vector};
use hikite_encoder::SentenceEncoder;
use parking_lot::Mutex;

use super::set::LabelledSet;
use super::{EvaluationProvider, EvaluationRow, SearchEvaluation};

const HEAD: &str = "# Search

<!-- made by `HIKITE_UPDATE=1 cargo test --workspace --lib evaluation`; do not edit -->

An LLM that sees hundreds of tools chooses badly. hikite shows it two, `tool_discovery` and `tool_execute`: the model says
what it wants to do, in any language, and gets the few tools that do it. This page says how they are found and how well.

## How a tool is found

Everything happens on your machine; nothing is sent anywhere unless a `cloud` provider, an embedding model or a reranker is
configured.

1. **Meaning** (`hybrid`, the default). A small encoder inside the program turns the question and each tool (module, name,
   description, names of its parameters) into vectors; texts of one meaning have similar vectors, in English and in Japanese.
   This decides nearly everything.
2. **Words** (`bm25`, and a small share of `hybrid`). The question's words are compared with each tool's name (which counts
   most), its module, its description and its parameters. Identifiers are split (`createIssue`, `get_HTTPUrl`), English words
   are stemmed, abbreviations of the field are known (`pr`, `repo`, `k8s`), and Chinese, Japanese and Korean text is cut into
   pairs of characters. Ids, numbers and quoted values of the question are not compared.
3. **Module.** Tools of a module that fits as a whole are lifted a little, by at most a tenth of the best score.
4. **Clauses.** A long question is also searched clause by clause, because it often asks for several things.
5. **Name.** A tool that the question names (`create_issue`, `github:create_issue`) comes first.
6. **Memory.** What led to a successful call before, in the same project, comes up again for similar questions.
   `hikite search memory` shows and erases it.

Only tools that the caller may see take part in any of this. The vectors of the built-in services and of 29 public servers
ship with the program; others are computed in the background when a server is first connected, and stored. Until then the
answer says how many tools have no vector yet.

`relevance` estimates how likely a hit is the right tool, from 0 to 1. `explanation` names what matched.

## How well

The sets `dev` and `dev-ja` decide: 871 tools of public servers whose questions were written for hikite before the encoder was
trained. The encoder never saw these servers; the weights of the ranking and the scale of `relevance` were chosen on them. The
other sets are public collections, for comparison; the encoder was trained on questions of metatool, so that only what memory
adds is telling there. Sets ending in `-ja` ask in Japanese for tools described in English.

`meaning` is the encoder alone, `hybrid` what runs by default. A row with `memory` 5 was measured on one half of the questions
after up to five of the other half per tool had been remembered; the row with 0 on the same half with nothing remembered.
R@5: of all right tools, the share among the first five. hit@5: whether any of them is. nDCG@10: the first ten places, early ones
counting more. ECE: how far `relevance` is from the share of right hits among the first five (where a question has one right
tool, as in `dev`). [benchmarks.md](benchmarks.md) has the times.

| set | tools | questions | provider | memory | R@1 | R@5 | R@10 | hit@1 | hit@5 | hit@10 | nDCG@10 | ECE |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
";

const TAIL: &str = "
On [mcpproxy-golden](../hikite-testkit/data/retrieval/mcpproxy-golden/README.md) another gateway publishes R@1 .418,
R@5 .681 and nDCG@10 .609 for its own search.

## The encoder

Three layers of all-MiniLM-L6-v2 (Apache-2.0), extended by 13,713 Japanese pieces and trained for hikite on questions in both
languages that were written one by one for some 4,400 tools of public servers, and on public pairs under MIT and Apache-2.0.
Its weights are part of the program, in signed bytes, under the Apache License 2.0.
[hikite-encoder/model](../hikite-encoder/model/README.md) has the data, the scripts and the provenance.

Limits: it reads the first 96 tokens of a tool (some 70 English words) and four times as many of a question. It was trained on
short questions; one that asks for many tools at once is ranked worse (mcp-bench above). It was trained on English and Japanese;
other languages in Latin letters work less well, and those in other scripts hardly: there the words decide. It knows what a tool
says about itself; a tool without a description is found by its name alone.

## On your own tools

`hikite eval questions.jsonl` measures the same on the tools of your config, with the time each question takes. Each line
is a question and the tools that answer it:

```json
{\"query\": \"close the ticket about the broken login\", \"relevant\": [\"jira:transition_issue\"]}
```

`--provider` measures one search: `bm25`, `meaning`, `hybrid`, or `embedding`, which compares the embedding model of your config
(`search.embedding`) with the built-in encoder. `--memory 5` measures what remembering adds, `--tools FILE` uses other tools than
your own, and `hikite eval FOLDER` reads a folder with `queries.jsonl` and `tools.jsonl`, or a folder of such folders. `--json`
prints everything for programs.
";

/// Required minimums of R@1, R@5 and nDCG@10, by set and provider.
const MINIMUMS: &[(&str, EvaluationProvider, [f64; 3])] = &[
    ("mcpproxy-golden", EvaluationProvider::Bm25, [0.50, 0.77, 0.69]),
    ("mcpproxy-golden", EvaluationProvider::Hybrid, [0.73, 0.91, 0.89]),
    ("mcpproxy-golden-ja", EvaluationProvider::Hybrid, [0.72, 0.95, 0.90]),
    ("livemcpbench", EvaluationProvider::Bm25, [0.0, 0.0, 0.34]),
    ("livemcpbench", EvaluationProvider::Hybrid, [0.0, 0.0, 0.43]),
    ("livemcpbench-ja", EvaluationProvider::Hybrid, [0.0, 0.0, 0.43]),
    ("mcp-bench", EvaluationProvider::Bm25, [0.0, 0.0, 0.49]),
    ("mcp-bench", EvaluationProvider::Hybrid, [0.0, 0.0, 0.62]),
    ("metatool", EvaluationProvider::Bm25, [0.0, 0.0, 0.63]),
];
/// Required minimums of hit@1 and hit@5 of the default search on the development sets, and the largest calibration error.
const DEVELOPMENT: &[(&str, [f64; 2])] = &[("dev", [0.44, 0.70]), ("dev-ja", [0.46, 0.70])];
const CALIBRATION_ERROR_MAX: f64 = 0.05;
/// Required gain in nDCG@10 from memory on metatool.
const MEMORY_GAIN: f64 = 0.03;
/// Processors round differently, which may swap two tools.
const TOLERANCE: f64 = 0.006;

const SETS: &[&str] = &[
    "dev",
    "dev-ja",
    "mcpproxy-golden",
    "mcpproxy-golden-ja",
    "livemcpbench",
    "livemcpbench-ja",
    "mcp-bench",
    "metatool",
];
const DEVELOPMENT_SETS: &[&str] = &["dev", "dev-ja"];
const PROVIDERS: [EvaluationProvider; 3] =
    [EvaluationProvider::Bm25, EvaluationProvider::Meaning, EvaluationProvider::Hybrid];
const REMEMBERED: usize = 5;

fn set(name: &str) -> LabelledSet {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hikite-testkit/data/retrieval").join(name);
    LabelledSet::read(&folder).expect("a labelled set")
}

/// The encoder, with a memory: several sets share their tools, and the providers their questions.
#[derive(Debug, Default)]
struct RememberingEncoder {
    encoder: SentenceEncoder,
    tools: Mutex<HashMap<String, Vector>>,
    questions: Mutex<HashMap<String, Vector>>,
}

static ENCODER: LazyLock<RememberingEncoder> = LazyLock::new(RememberingEncoder::default);

impl Encoder for RememberingEncoder {
    fn model(&self) -> &str {
        self.encoder.model()
    }

    fn question(&self, text: &str) -> Vector {
        remembered(&self.questions, text, |text| self.encoder.question(text))
    }

    fn tool(&self, text: &str) -> Vector {
        remembered(&self.tools, text, |text| self.encoder.tool(text))
    }
}

fn remembered(known: &Mutex<HashMap<String, Vector>>, text: &str, encode: impl Fn(&str) -> Vector) -> Vector {
    if let Some(known) = known.lock().get(text) {
        return known.clone();
    }
    let vector = encode(text);
    known.lock().insert(text.to_owned(), vector.clone());
    vector
}

fn measured(name: &str, provider: EvaluationProvider) -> Vec<EvaluationRow> {
    let set = set(name);
    let bench = SearchEvaluation::new(&set, provider, &*ENCODER);
    if name == "metatool" && provider == EvaluationProvider::Hybrid {
        return bench.halves(REMEMBERED).into();
    }
    vec![bench.all()]
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/search.md")
}

fn line(row: &EvaluationRow) -> String {
    let memory = row.memory.map_or("–".to_owned(), |count| count.to_string());
    let (set, tools, questions, provider) = (&row.set, row.tools, row.questions, row.provider.word());
    let mut line = format!("| {set} | {tools} | {questions} | {provider} | {memory} |");
    for figure in figures(row) {
        write!(line, " {figure:.3} |").expect("a string takes everything");
    }
    write!(line, " {:.3} |", row.calibration_error).expect("a string takes everything");
    line
}

fn figures(row: &EvaluationRow) -> [f64; 7] {
    let ([r1, r5, r10], [h1, h5, h10]) = (row.quality.recall, row.quality.hit);
    [r1, r5, r10, h1, h5, h10, row.quality.ndcg]
}

/// Checks that the page matches the measured numbers, and that they reach the minimums.
#[track_caller]
fn check(rows: &[EvaluationRow]) {
    let page = std::fs::read_to_string(file()).expect("docs/search.md");
    for row in rows {
        let measured = line(row);
        let (head, _) = measured.split_at(measured.match_indices('|').nth(5).expect("six columns").0);
        let written = page.lines().find(|line| line.starts_with(head));
        let written = written.unwrap_or_else(|| panic!("docs/search.md has no row for {measured}"));
        let cells = written.split('|').skip(6).filter_map(|cell| cell.trim().parse::<f64>().ok());
        let near = cells.zip(figures(row)).filter(|(documented, is)| (documented - is).abs() <= TOLERANCE).count();
        assert_eq!(near, 7, "docs/search.md is stale (see its second line)\nthere {written}\nhere  {measured}");
        good_enough(row);
    }
}

#[track_caller]
fn good_enough(row: &EvaluationRow) {
    let figures = [row.quality.recall[0], row.quality.recall[1], row.quality.ndcg];
    let least = MINIMUMS.iter().filter(|(set, provider, _)| *set == row.set && *provider == row.provider);
    for (_, _, least) in least {
        let reached = figures.iter().zip(least).all(|(figure, least)| figure >= least);
        assert!(reached, "{}: at least {least:?}", line(row));
    }
    let default = DEVELOPMENT.iter().filter(|(set, _)| *set == row.set && row.provider == EvaluationProvider::Hybrid);
    for (_, least) in default {
        let reached = row.quality.hit.iter().zip(least).all(|(figure, least)| figure >= least);
        assert!(reached, "{}: at least {least:?}", line(row));
        assert!(row.calibration_error <= CALIBRATION_ERROR_MAX, "{}", line(row));
    }
}

/// Measures these sets and checks them against the page, unless the page is being rewritten.
#[track_caller]
fn held(sets: &[&str], provider: EvaluationProvider) -> Vec<EvaluationRow> {
    let rows: Vec<EvaluationRow> = sets.iter().flat_map(|name| measured(name, provider)).collect();
    if std::env::var_os("HIKITE_UPDATE").is_none() {
        check(&rows);
    }
    rows
}

#[test]
fn words_find_what_the_page_says() {
    held(SETS, EvaluationProvider::Bm25);
}

#[test]
fn meaning_finds_what_the_page_says() {
    held(DEVELOPMENT_SETS, EvaluationProvider::Meaning);
}

#[test]
fn words_and_meaning_find_what_the_page_says() {
    held(&SETS[..SETS.len() - 1], EvaluationProvider::Hybrid);
}

#[test]
fn what_was_of_use_before_is_found_sooner() {
    let rows = held(&["metatool"], EvaluationProvider::Hybrid);
    let [without, with] = rows.as_slice() else { panic!("{} rows", rows.len()) };
    let gain = with.quality.ndcg - without.quality.ndcg;
    assert!(gain >= MEMORY_GAIN, "memory adds {gain}");
}

#[test]
fn the_page_says_no_more_than_was_measured() {
    if std::env::var_os("HIKITE_UPDATE").is_some() {
        let all = SETS.iter().flat_map(|name| PROVIDERS.map(|provider| (name, provider)));
        let all =
            all.filter(|(name, provider)| *provider != EvaluationProvider::Meaning || DEVELOPMENT_SETS.contains(name));
        let rows: Vec<EvaluationRow> = all.flat_map(|(name, provider)| measured(name, provider)).collect();
        let lines: Vec<String> = rows.iter().map(line).collect();
        std::fs::write(file(), format!("{HEAD}{}\n{TAIL}", lines.join("\n"))).expect("a file");
    }
    let page = std::fs::read_to_string(file()).expect("docs/search.md");
    let rows = page.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL));
    let rows = rows.expect("docs/search.md is stale (see its second line)");
    // Each set by words and with meaning, the development sets by meaning alone, too, and metatool once more with memory.
    assert_eq!(rows.lines().count(), 2 * SETS.len() + DEVELOPMENT_SETS.len() + 1);
}

//! Generates `docs/search.md` from measurements on the labelled sets. `HIKITE_UPDATE=1 cargo test --workspace --lib
//! evaluation` rewrites it; without the variable, the tests compare its numbers and the required minimums with a new
//! measurement.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use hikite_encoder::SentenceEncoder;

use super::set::LabelledSet;
use super::{EvaluationProvider, EvaluationRow, SearchEvaluation};

const HEAD: &str = "# Search

<!-- made by `HIKITE_UPDATE=1 cargo test --workspace --lib evaluation`; do not edit -->

An LLM that sees hundreds of tools chooses badly. hikite shows it two, `tool_discovery` and `tool_execute`: the model says
what it wants to do, in any language, and gets the few tools that do it. This page says how they are found and how well.

## How a tool is found

Everything happens on your machine; nothing is sent anywhere unless a `cloud` provider is configured.

1. **Words** (`bm25`). The question's words are held against each tool's name (which counts most), its module, its
   description, and the names and descriptions of its parameters. Identifiers are taken apart (`createIssue`,
   `get_HTTPUrl`), English words are reduced to their stems, and Chinese, Japanese and Korean text is cut into pairs of
   letters. A rare word says more than a common one.
2. **Meaning** (`hybrid`, the default). A small multilingual encoder inside the program turns the question and the first
   sentence of each tool into vectors; texts of one meaning lie close together, in whatever language they are. Words and
   meaning are put on one scale and added. Until a tool's vector is made, its words decide.
3. **Module.** A tool whose neighbours fit as well is the likelier one.
4. **Clauses.** A long question is also looked at clause by clause, because it often asks for several things.
5. **Name.** A tool that is called by its name (`create_issue`, `github:create_issue`) comes first.
6. **Memory.** What led to a successful call before, in the same project, comes up again when something alike is asked.
   `hikite search memory` shows and erases it.

Only tools that the caller may see take part in any of this.

`relevance` says how sure one may be of a hit, from 0 to 1: how much of the question's words it holds, how near its meaning
is, and whether it was used before for something alike. It does not say that the first hit is always good: where nothing
fits, the best is still bad, and says so. `explanation` names what matched.

## How well

Measured offline on public sets. The weights were chosen on other pairs of questions and tools, but these sets were in
sight meanwhile, and which text of a tool the encoder reads was compared on them; expect a little less on tools that nobody
has seen. A hybrid row with `memory` 5 was measured on one half of the questions after up to five of the other half per
tool had been remembered, the row with 0 on the same half with nothing remembered. R@5: of all right tools, how many are
among the first five. hit@5: whether any is. nDCG@10: the first ten places, early ones counting more. The sets ending in
`-ja` ask in Japanese for tools described in English. The encoder has seen questions of metatool, so that only what memory
adds is telling there.

| set | tools | questions | provider | memory | R@1 | R@5 | R@10 | hit@1 | hit@5 | hit@10 | nDCG@10 |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

const TAIL: &str = "
On [mcpproxy-golden](../hikite-testkit/data/retrieval/mcpproxy-golden/README.md) another gateway publishes R@1 .418,
R@5 .681 and nDCG@10 .609 for its own search.

## On your own tools

`hikite eval questions.jsonl` measures the same on the tools of your config, with the time each question takes. Each line
is a question and the tools that answer it:

```json
{\"query\": \"close the ticket about the broken login\", \"relevant\": [\"jira:transition_issue\"]}
```

`--provider bm25` or `--provider hybrid` measures one of the two, `--memory 5` what remembering adds, `--tools FILE` uses
other tools than your own, and `hikite eval FOLDER` reads a folder with `queries.jsonl` and `tools.jsonl`, or a folder of
such folders. `--json` prints everything for programs.
";

/// Required minimums of R@1, R@5 and nDCG@10, by set and provider.
const MINIMUMS: &[(&str, EvaluationProvider, [f64; 3])] = &[
    ("mcpproxy-golden", EvaluationProvider::Bm25, [0.50, 0.77, 0.69]),
    ("mcpproxy-golden", EvaluationProvider::Hybrid, [0.59, 0.89, 0.82]),
    ("mcpproxy-golden-ja", EvaluationProvider::Hybrid, [0.0, 0.90, 0.0]),
    ("livemcpbench", EvaluationProvider::Bm25, [0.0, 0.0, 0.34]),
    ("livemcpbench", EvaluationProvider::Hybrid, [0.0, 0.0, 0.41]),
    ("livemcpbench-ja", EvaluationProvider::Hybrid, [0.0, 0.0, 0.38]),
    ("mcp-bench", EvaluationProvider::Bm25, [0.0, 0.0, 0.49]),
    ("mcp-bench", EvaluationProvider::Hybrid, [0.0, 0.0, 0.62]),
    ("metatool", EvaluationProvider::Bm25, [0.0, 0.0, 0.63]),
];
/// Required gain in nDCG@10 from memory on metatool.
const MEMORY_GAIN: f64 = 0.05;
/// Processors round differently, which may swap two tools.
const TOLERANCE: f64 = 0.006;

const SETS: &[&str] =
    &["mcpproxy-golden", "mcpproxy-golden-ja", "livemcpbench", "livemcpbench-ja", "mcp-bench", "metatool"];
const REMEMBERED: usize = 5;

fn set(name: &str) -> LabelledSet {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hikite-testkit/data/retrieval").join(name);
    LabelledSet::read(&folder).expect("a labelled set")
}

fn measured(name: &str, provider: EvaluationProvider) -> Vec<EvaluationRow> {
    let (set, encoder) = (set(name), SentenceEncoder::new());
    let bench = SearchEvaluation::new(&set, provider, &encoder);
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
fn words_and_meaning_find_what_the_page_says() {
    held(&["mcpproxy-golden", "mcpproxy-golden-ja"], EvaluationProvider::Hybrid);
}

#[test]
fn words_and_meaning_find_it_among_hundreds_of_tools() {
    held(&["livemcpbench", "livemcpbench-ja", "mcp-bench"], EvaluationProvider::Hybrid);
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
        let all = SETS.iter().flat_map(|name| [(name, EvaluationProvider::Bm25), (name, EvaluationProvider::Hybrid)]);
        let rows: Vec<EvaluationRow> = all.flat_map(|(name, provider)| measured(name, provider)).collect();
        let lines: Vec<String> = rows.iter().map(line).collect();
        std::fs::write(file(), format!("{HEAD}{}\n{TAIL}", lines.join("\n"))).expect("a file");
    }
    let page = std::fs::read_to_string(file()).expect("docs/search.md");
    let rows = page.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL));
    let rows = rows.expect("docs/search.md is stale (see its second line)");
    // Each set once per provider, and metatool once more with memory.
    assert_eq!(rows.lines().count(), 2 * SETS.len() + 1);
}

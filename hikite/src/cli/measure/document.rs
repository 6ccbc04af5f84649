//! Checks `docs/measure.md` and its chart against a new measurement of the recorded lists and results, and that
//! against the required bounds. `HIKITE_UPDATE=1 cargo test --workspace --lib measure` rewrites them.

use std::path::{Path, PathBuf};

use hikite_gateway::Surfaces;
use hikite_measure::{
    DEFAULT_SURFACES, MeasureReport, ModuleSize, ResultSize, chart, read_answers, thousands, write_page,
};

use super::start_recorded;

/// Upper bound of the default menu, in percent of the flat list.
const MENU_PERCENT: usize = 1;
/// Upper bound of the default `get_module_schema` result, in percent of the definitions.
const SIGNATURES_PERCENT: usize = 25;
/// Upper bound of a shaped list, in percent of its JSON. In bytes all reach a tenth, as `core::compact` demands; in
/// tokens only lists without long ids do, because ids cost more tokens than their length suggests.
const SHAPED_PERCENT: usize = 10;
const SHAPED_WITH_IDS_PERCENT: usize = 13;
const WITH_IDS: &str = "notion";
/// Upper bound of a compact list of unknown objects, in percent of its JSON, from a minimum number of rows on.
const ROWS_PERCENT: usize = 85;
const ROWS: usize = 5;

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

async fn measured() -> MeasureReport {
    let lists = at("hikite-testkit/fixtures/toolsets");
    let runtime = start_recorded(&lists, "no program".into()).await.expect("a runtime with recorded lists");
    let view = runtime.gateway.catalogs().owner_view();
    let known: Vec<String> = view.enabled_tools().map(|tool| tool.key.to_string()).collect();
    let samples = read_answers(&at("hikite-testkit/fixtures/answers"), &known).expect("recorded answers");
    let report =
        MeasureReport::new(&runtime.gateway, Surfaces::of(DEFAULT_SURFACES), &samples, 10).await.expect("figures");
    runtime.stop().await;
    report
}

#[tokio::test]
async fn the_page_and_its_picture_are_what_is_measured() {
    let report = measured().await;
    let (file, picture) = (at("docs/measure.md"), at("docs/measure.svg"));
    let old = std::fs::read_to_string(&file).expect("docs/measure.md");
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("measure.md");
    std::fs::write(&copy, &old).expect("a copy");
    write_page(&copy, &report).expect("a page");
    let (new, drawn) = (std::fs::read_to_string(&copy).expect("a page"), chart(&report));
    if std::env::var_os("HIKITE_UPDATE").is_some() {
        std::fs::write(&file, &new).expect("a page");
        std::fs::write(&picture, &drawn).expect("a picture");
        return;
    }
    let stale = "see the first lines of hikite/src/cli/measure/document.rs";
    assert!(new.starts_with("# What tools cost a model\n\nA model"), "the page has no place for the figures");
    for (committed, is) in old.lines().zip(new.lines()) {
        assert_eq!(committed, is, "docs/measure.md is stale: {stale}");
    }
    assert!(old == new, "docs/measure.md is stale: {stale}");
    let old = std::fs::read_to_string(&picture).expect("docs/measure.svg");
    assert!(old == drawn, "docs/measure.svg is stale: {stale}");
}

#[tokio::test]
async fn the_figures_are_as_good_as_they_must_be() {
    let report = measured().await;
    assert_eq!((report.modules.len(), report.tools()), (29, 590));
    let flat = report.flat();
    at_most("the default menu", report.even.menu, flat, MENU_PERCENT);
    let sum = |figure: fn(&ModuleSize) -> usize| report.modules.iter().map(figure).sum::<usize>();
    let definitions = sum(|module| module.flat);
    at_most("signatures", sum(|module| module.signatures.tokens), definitions, SIGNATURES_PERCENT);
    assert!(report.modules.iter().all(|module| module.signatures.is_whole), "nothing may be left out");
    let (mut lists, mut shaped) = (0, 0);
    for answer in &report.answers {
        let ResultSize { tool, plain, compact, .. } = answer;
        at_most(tool, *compact, *plain, 100);
        if answer.rows.is_some_and(|rows| rows >= ROWS) {
            lists += 1;
            at_most(tool, *compact, *plain, ROWS_PERCENT);
        }
        if let Some(tokens) = answer.shaped {
            shaped += 1;
            let percent = if answer.module == WITH_IDS { SHAPED_WITH_IDS_PERCENT } else { SHAPED_PERCENT };
            at_most(tool, tokens, *plain, percent);
        }
    }
    assert!(lists >= 5 && shaped >= 5, "only {lists} lists and {shaped} shapes");
}

#[tokio::test]
async fn the_readmes_tell_the_same() {
    let report = measured().await;
    for name in ["README.md", "README.ja.md"] {
        let text = std::fs::read_to_string(at(name)).expect("a page");
        let picture = text.lines().find(|line| line.contains("docs/measure.svg")).expect("the picture");
        for figure in [report.tools(), report.flat(), report.even.menu].map(thousands) {
            assert!(picture.contains(&figure), "{name} must say {figure}: {picture}");
        }
    }
}

#[track_caller]
fn at_most(what: &str, part: usize, whole: usize, percent: usize) {
    assert!(part > 0 && part * 100 <= whole * percent, "{what}: {part} of {whole} is more than {percent} %");
}

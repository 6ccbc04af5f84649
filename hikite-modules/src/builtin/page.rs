//! Generates `docs/modules.md` from the built-in module files. `HIKITE_UPDATE=1 cargo test --workspace --lib --
//! builtin::page` rewrites it.

use std::fmt::Write;
use std::path::Path;

use hikite_core::risk::Risk;

use crate::file::{LocalizedText, ModuleFile, TextLanguage};
use crate::module::tests::settings;
use crate::{BUILTIN, Service};

const HEAD: &str = "\
# The services that come with hikite

Each is a module: its tools can be called as soon as the config has a token for its provider. How to connect them, and how to
describe services of your own, is in [module-files.md](module-files.md) ([日本語](module-files.ja.md)). This page is made from
the files in `hikite-modules/modules`; a test fails when it is stale.

*Pages* says whether a tool takes `fetch_all`, `page_size`, `max_items` and `cursor`; *compact* is the form in which models
are shown its answers.
";

fn page() -> String {
    let files = BUILTIN.map(|(name, text)| {
        let file = ModuleFile::read(text).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        let service = Service::read(text, &settings()).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        (file, service)
    });
    let mut page = HEAD.to_owned();
    page.push_str("\n| module | provider | tools | read | write | destructive |\n|---|---|---|---|---|---|\n");
    let mut sums = [0; 3];
    for (file, service) in &files {
        let risks = service.risks();
        sums = std::array::from_fn(|at| sums[at] + risks[at]);
        let (title, anchor) = (&file.title, file.title.to_lowercase().replace(' ', "-"));
        let provider = service.provider().unwrap_or_default();
        writeln!(page, "| [{title}](#{anchor}) | `{provider}` | {} |", counts(risks)).expect("a string");
    }
    writeln!(page, "| | | {} |", counts(sums)).expect("a string");
    for (file, service) in &files {
        section(file, service, &mut page);
    }
    page
}

fn counts(risks: [usize; 3]) -> String {
    let all: usize = risks.iter().sum();
    format!("{all} | {} | {} | {}", risks[0], risks[1], risks[2])
}

fn section(file: &ModuleFile, service: &Service, page: &mut String) {
    let both =
        |text: &LocalizedText| format!("{} / {}", text.get(TextLanguage::English), text.get(TextLanguage::Japanese));
    let mut add = |line: String| {
        page.push_str(&line);
        page.push('\n');
    };
    add(format!("\n## {}\n", file.title));
    add(format!("{}\n", both(&file.description)));
    let docs = file.docs.as_deref().unwrap_or_default();
    let version = file.api_version.as_deref().map(|version| format!(" API version {version}:")).unwrap_or_default();
    add(format!(
        "Module `{}`, provider `{}`.{version} <{docs}>\n",
        file.module,
        service.provider().unwrap_or_default()
    ));
    add("| tool | risk | what it does | 説明 | pages | compact |\n|---|---|---|---|---|---|".into());
    let japanese = service.about(TextLanguage::Japanese);
    for (tool, japanese) in service.about(TextLanguage::English).zip(japanese) {
        let risk = if tool.risk == Risk::Destructive { "**destructive**" } else { tool.risk.name() };
        let pages = if tool.pages { "yes" } else { "" };
        let (name, words, translated) = (tool.name, cell(tool.description), cell(japanese.description));
        add(format!("| `{name}` | {risk} | {words} | {translated} | {pages} | {} |", tool.forms.join(", ")));
    }
    if file.resources.names().next().is_some() {
        add("\n| resource | what it is |\n|---|---|".into());
    }
    for (_, resource) in file.resources.iter() {
        add(format!("| `{}` | {} |", resource.uri, cell(&both(&resource.description))));
    }
    if file.prompts.names().next().is_some() {
        add("\n| prompt | arguments | what it asks for |\n|---|---|---|".into());
    }
    for (name, prompt) in file.prompts.iter() {
        let arguments = prompt.arguments.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        add(format!("| `{name}` | {arguments} | {} |", cell(&both(&prompt.description))));
    }
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[test]
fn the_page_of_modules_is_made_from_their_files() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/modules.md");
    if std::env::var_os("HIKITE_UPDATE").is_some() {
        std::fs::write(&file, page()).expect("a file");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let how = "HIKITE_UPDATE=1 cargo test --workspace --lib -- builtin::page";
    assert!(written == page(), "docs/modules.md is stale: {how}");
}

#[test]
fn every_tool_is_described_in_both_languages_and_has_a_compact_form_if_it_reads() {
    for (name, text) in BUILTIN {
        let review = crate::review(text, &settings()).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        assert_eq!(review.warnings, [], "{name}");
    }
}

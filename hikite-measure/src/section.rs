//! Sections of the report, most important first. The terminal and the Markdown output share them.

use super::MeasureReport;
use super::answer::ResultSize;
use super::menu::ModuleSize;
use super::number::{counted, share, thousands};
use super::table::MeasureTable;

/// Prefix of a number whose result was shortened.
const SHORT: &str = "~";

#[derive(Clone, Debug)]
pub(crate) struct ReportSection {
    pub(crate) title: &'static str,
    /// Text before the table.
    pub(crate) words: String,
    pub(crate) table: Option<MeasureTable>,
}

/// Formats the report for a terminal.
pub fn text(report: &MeasureReport) -> String {
    let sections = sections(report).into_iter().map(|section| {
        let parts =
            [section.title.to_owned(), wrapped(&section.words), section.table.map_or(String::new(), |t| t.plain())];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    });
    sections.collect::<Vec<_>>().join("\n\n")
}

pub(crate) fn sections(report: &MeasureReport) -> Vec<ReportSection> {
    let mut all = vec![menus(report), even(report), modules(report)];
    if !report.answers.is_empty() {
        all.push(answers(report));
    }
    if !report.largest.is_empty() {
        all.push(largest(report));
    }
    all
}

fn menus(report: &MeasureReport) -> ReportSection {
    let mut table =
        MeasureTable::new(&["surface", "tools", "tokens", "of flat", "passed on", "of flat", "instructions"]);
    let passed_on = report.menus.first().map_or(0, |menu| menu.passed_on);
    for menu in &report.menus {
        let mark = match (menu.is_default(), menu.is_shown) {
            (true, true) => " (default, shown)",
            (true, false) => " (default)",
            (false, true) => " (shown)",
            (false, false) => "",
        };
        table.row(vec![
            format!("{}{mark}", menu.name),
            thousands(menu.tools),
            thousands(menu.tokens),
            share(menu.tokens, report.flat()),
            thousands(menu.passed_on),
            share(menu.passed_on, passed_on),
            thousands(menu.instructions),
        ]);
    }
    let words =
        "What a model reads of the tools before it calls any: `tools/list`, and the part of it that most clients \
                 pass on (names, descriptions, input schemas)."
            .to_owned();
    ReportSection { title: "Menus", words, table: Some(table) }
}

fn even(report: &MeasureReport) -> ReportSection {
    ReportSection { title: "Breaking even", words: report.even.words(), table: None }
}

fn modules(report: &MeasureReport) -> ReportSection {
    let mut table =
        MeasureTable::new(&["module", "tools", "flat", "names", "signatures", "schemas", "signatures of flat"]);
    let (mut tools, mut flat, mut opened) = (0, 0, [0; 3]);
    for module in &report.modules {
        let answers = [module.names, module.signatures, module.schemas];
        (tools, flat) = (tools + module.tools, flat + module.flat);
        opened = std::array::from_fn(|at| opened[at] + answers[at].tokens);
        let [names, signatures, schemas] = answers.map(|opened| {
            let mark = if opened.is_whole { "" } else { SHORT };
            format!("{mark}{}", thousands(opened.tokens))
        });
        let (name, of) = (module.name.clone(), share(module.signatures.tokens, module.flat));
        table.row(vec![name, thousands(module.tools), thousands(module.flat), names, signatures, schemas, of]);
    }
    let [names, signatures, schemas] = opened.map(thousands);
    let (name, of) = (counted(report.modules.len(), "module"), share(opened[1], flat));
    table.row(vec![name, thousands(tools), thousands(flat), names, signatures, schemas, of]);
    let mut words = "Its tools in a flat list, and what `get_module_schema` answers by its `detail`.".to_owned();
    let is_short =
        |module: &ModuleSize| [module.names, module.signatures, module.schemas].iter().any(|opened| !opened.is_whole);
    if report.modules.iter().any(is_short) {
        words = format!(
            "{words} What is marked {SHORT} would be longer than `limits.compact_bytes` and is told in fewer words."
        );
    }
    if !report.silent.is_empty() {
        words = format!("{words} Not measured, because no list is known: {}.", report.silent.join(", "));
    }
    ReportSection { title: "Modules", words, table: Some(table) }
}

/// Builds the results section, one line per module.
fn answers(report: &MeasureReport) -> ReportSection {
    let mut table = MeasureTable::new(&[
        "module",
        "answers",
        "as JSON",
        "compact",
        "of JSON",
        "with a shape",
        "as JSON",
        "shaped",
        "of JSON",
    ]);
    let mut names: Vec<&str> = Vec::new();
    for answer in &report.answers {
        if !names.contains(&&*answer.module) {
            names.push(&answer.module);
        }
    }
    for name in &names {
        let of: Vec<&ResultSize> = report.answers.iter().filter(|answer| answer.module == **name).collect();
        table.row(answer_row((*name).to_owned(), &of));
    }
    if names.len() > 1 {
        table.row(answer_row(counted(names.len(), "module"), &report.answers.iter().collect::<Vec<_>>()));
    }
    let words =
        "What a model reads of the answers: as JSON without blanks, in the compact form, and in the compact form \
                 with only the fields that the tool's shape names."
            .to_owned();
    ReportSection { title: "Answers", words, table: Some(table) }
}

fn answer_row(name: String, answers: &[&ResultSize]) -> Vec<String> {
    let sum = |figure: fn(&ResultSize) -> usize| answers.iter().map(|answer| figure(answer)).sum::<usize>();
    let (plain, compact) = (sum(|answer| answer.plain), sum(|answer| answer.compact));
    let (count, before, after) = (
        sum(|answer| usize::from(answer.shaped.is_some())),
        sum(|answer| answer.shaped.map_or(0, |_| answer.plain)),
        sum(|answer| answer.shaped.unwrap_or(0)),
    );
    let shaped = match count {
        0 => ["–", "–", "–", "–"].map(str::to_owned),
        _ => [thousands(count), thousands(before), thousands(after), share(after, before)],
    };
    let all = [name, thousands(answers.len()), thousands(plain), thousands(compact), share(compact, plain)];
    all.into_iter().chain(shaped).collect()
}

fn largest(report: &MeasureReport) -> ReportSection {
    let mut table = MeasureTable::new(&["tool", "tokens", "of flat"]);
    for weight in &report.largest {
        table.row(vec![weight.key.clone(), thousands(weight.tokens), share(weight.tokens, report.flat())]);
    }
    let words = "Where most of the flat list goes.".to_owned();
    ReportSection { title: "Largest definitions", words, table: Some(table) }
}

const LINE: usize = 100;

/// Wraps text to lines of at most `LINE` characters.
fn wrapped(text: &str) -> String {
    let (mut wrapped, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        let joint = if used == 0 {
            ""
        } else if used + 1 + length > LINE {
            "\n"
        } else {
            " "
        };
        used = if joint == " " { used + 1 + length } else { length };
        wrapped.push_str(joint);
        wrapped.push_str(word);
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_between_words() {
        let text = wrapped(&"twelve chars ".repeat(20));
        assert!(text.lines().all(|line| line.chars().count() <= LINE), "{text}");
        assert!(text.lines().count() > 2);
        assert_eq!(text.replace('\n', " "), "twelve chars ".repeat(20));
        assert_eq!(wrapped(""), "");
    }
}

//! All measurements as JSON. `docs/measure.md` documents each member; members are never removed or reused.

use serde_json::{Value, json};

use super::MeasureReport;
use super::answer::ResultSize;
use super::count::VOCABULARY;
use super::menu::{MenuSize, ModuleSize};
use super::number::percent;

pub fn object(report: &MeasureReport) -> Value {
    let even = &report.even;
    let flat = report.flat();
    json!({
        "vocabulary": VOCABULARY,
        "tools": report.tools(),
        "flat": flat,
        "menus": report.menus.iter().map(|menu| menu_object(menu, flat)).collect::<Value>(),
        "breakEven": {
            "menu": even.menu,
            "median": even.median,
            "all": even.all,
            "afterMedian": even.after_median,
            "afterLargest": even.after_largest,
            "words": even.words(),
        },
        "modules": report.modules.iter().map(module).collect::<Value>(),
        "silent": report.silent,
        "answers": report.answers.iter().map(answer).collect::<Value>(),
        "largest": report.largest.iter().map(|weight| json!({ "tool": weight.key, "tokens": weight.tokens })).collect::<Value>(),
    })
}

fn menu_object(menu: &MenuSize, flat: usize) -> Value {
    json!({
        "surface": menu.name.split(" + ").collect::<Vec<_>>(),
        "tools": menu.tools,
        "tokens": menu.tokens,
        "percent": percent(menu.tokens, flat),
        "passedOn": menu.passed_on,
        "instructions": menu.instructions,
        "default": menu.is_default(),
        "shown": menu.is_shown,
    })
}

fn module(module: &ModuleSize) -> Value {
    let opened = [("names", module.names), ("signatures", module.signatures), ("schemas", module.schemas)];
    let short = opened.iter().filter(|(_, opened)| !opened.is_whole).map(|(word, _)| *word);
    let short: Vec<&str> = short.collect();
    json!({
        "module": module.name,
        "tools": module.tools,
        "flat": module.flat,
        "names": module.names.tokens,
        "signatures": module.signatures.tokens,
        "schemas": module.schemas.tokens,
        "short": short,
    })
}

fn answer(answer: &ResultSize) -> Value {
    json!({
        "module": answer.module,
        "tool": answer.tool,
        "rows": answer.rows,
        "json": answer.plain,
        "compact": answer.compact,
        "shaped": answer.shaped,
    })
}

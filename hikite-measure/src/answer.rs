//! Measures tool results in tokens: as returned, in compact form, and with only the fields of a shape. Nothing is cut
//! to fit a budget, so that the forms stay comparable.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use hikite_core::compact::{Shape, compact};
use hikite_core::json::Raw;
use hikite_core::tool_output::ToolOutput;
use serde_json::Value;

use super::count::tokens;
use super::recorded::{json_files, read as read_json};
use super::shape;

/// File with the shapes of tools, by key, in a folder of recorded results.
const SHAPES: &str = "shapes.json";
const HINT: &str =
    "hint: Use files such as github/list_issues.json or github.list_issues.json with the response of the tool.";

/// A recorded result of a tool.
#[derive(Clone, Debug)]
pub struct RecordedResult {
    pub module: String,
    pub tool: String,
    pub value: Value,
    pub shape: Option<Shape>,
}

/// Token counts of one result.
#[derive(Clone, Debug)]
pub struct ResultSize {
    pub module: String,
    pub tool: String,
    /// Number of rows, if the result is or contains a list of objects.
    pub rows: Option<usize>,
    /// Tokens as minified JSON; plain text is counted unchanged.
    pub plain: usize,
    pub compact: usize,
    /// Tokens with its shape, if one is known.
    pub shaped: Option<usize>,
}

impl RecordedResult {
    pub(crate) fn measure_tokens(&self) -> ResultSize {
        let plain = match &self.value {
            Value::String(text) => tokens(text),
            value => tokens(&value.to_string()),
        };
        let measure_tokens = |shape: Option<&Shape>| tokens(&compact(&self.value, shape, usize::MAX).text);
        ResultSize {
            module: self.module.clone(),
            tool: self.tool.clone(),
            rows: rows(&self.value),
            plain,
            compact: measure_tokens(None),
            shaped: self.shape.as_ref().map(|shape| measure_tokens(Some(shape))),
        }
    }
}

/// Reads the recorded results of a folder: `MODULE/TOOL*.json` or `MODULE.TOOL*.json`, each a `tools/call` result or
/// the value itself. `known` are tool keys, used to find where a tool name ends.
pub fn read(folder: &Path, known: &[String]) -> Result<Vec<RecordedResult>> {
    let mut samples = Vec::new();
    for (module, file) in files(folder)? {
        let (module, rest) = match module {
            Some(module) => (module, stem(&file)),
            None => split(&file, known)?,
        };
        let tool = tool(&module, &rest, known);
        samples.push(RecordedResult { value: value(&read_json(&file)?), module, tool, shape: None });
    }
    if samples.is_empty() {
        bail!("There are no recorded responses in {}.\n{HINT}", folder.display());
    }
    let mut shapes = shape::read(&folder.join(SHAPES))?;
    for sample in &mut samples {
        sample.shape = shapes.get(&format!("{}:{}", sample.module, sample.tool)).cloned();
    }
    shapes.retain(|key, _| !samples.iter().any(|sample| *key == format!("{}:{}", sample.module, sample.tool)));
    match shapes.keys().min() {
        Some(key) => bail!("{SHAPES} contains `{key}`, for which there is no response."),
        None => Ok(samples),
    }
}

/// Returns the value inside a `tools/call` result, or the document itself.
pub(crate) fn value(document: &Raw) -> Value {
    let is_result = document.object().is_some_and(|members| members.get("content").and_then(Raw::items).is_some());
    if is_result { ToolOutput::read(document).value.value() } else { document.value() }
}

/// Lists the result files, with the module if a subfolder names it.
fn files(folder: &Path) -> Result<Vec<(Option<String>, PathBuf)>> {
    let beside = json_files(folder)?.into_iter().filter(|file| !file.ends_with(SHAPES)).map(|file| (None, file));
    let mut files: Vec<(Option<String>, PathBuf)> = beside.collect();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut inside: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    inside.sort();
    for folder in inside {
        let module = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        files.extend(json_files(&folder)?.into_iter().map(|file| (module.clone(), file)));
    }
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Splits `MODULE.TOOL`, or `MODULE-TOOL` at the longest known module name.
fn split(file: &Path, known: &[String]) -> Result<(String, String)> {
    let stem = stem(file);
    let modules = known.iter().filter_map(|key| Some(key.split_once(':')?.0));
    let dashed = modules.filter_map(|module| Some((module, stem.strip_prefix(module)?.strip_prefix('-')?)));
    let parts = stem.split_once('.').or_else(|| dashed.max_by_key(|(module, _)| module.len()));
    let parts = parts.filter(|(module, tool)| !module.is_empty() && !tool.is_empty());
    let (module, rest) = parts.ok_or_else(|| anyhow!("{} does not name a tool.\n{HINT}", file.display()))?;
    Ok((module.to_owned(), rest.to_owned()))
}

/// Returns the longest known tool name that `rest` starts with, or else the part before the first dot.
fn tool(module: &str, rest: &str, known: &[String]) -> String {
    let names = known.iter().filter_map(|key| key.strip_prefix(module)?.strip_prefix(':'));
    let fitting = names.filter(|name| rest.starts_with(name)).max_by_key(|name| name.len());
    fitting.unwrap_or_else(|| rest.split('.').next().unwrap_or(rest)).to_owned()
}

fn rows(value: &Value) -> Option<usize> {
    let rows = |value: &Value| {
        let items = value.as_array().filter(|items| !items.is_empty())?;
        items.iter().all(Value::is_object).then_some(items.len())
    };
    let inside = || value.as_object()?.values().filter_map(rows).max();
    rows(value).or_else(inside)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known() -> Vec<String> {
        ["git:log", "git:log_all", "google:x", "google-calendar:list"].map(str::to_owned).into()
    }

    #[track_caller]
    fn is(file: &str, module: &str, tool_name: &str) {
        let (found, rest) = split(Path::new(file), &known()).expect("a name");
        assert_eq!((found.as_str(), tool(&found, &rest, &known()).as_str()), (module, tool_name), "{file}");
    }

    #[test]
    fn a_file_is_named_after_its_tool() {
        is("git.log.json", "git", "log");
        is("git.log-2.json", "git", "log");
        is("git.log_all.open.json", "git", "log_all");
        is("git-log.json", "git", "log");
        is("google-calendar-list.json", "google-calendar", "list");
        is("other.thing.7.json", "other", "thing");
        for wrong in ["log.json", "other-thing.json", ".log.json", "git..json"] {
            let outcome = split(Path::new(wrong), &known());
            assert!(outcome.is_err() || wrong == "git..json", "{wrong}: {outcome:?}");
        }
    }

    #[test]
    fn an_answer_is_a_result_or_the_value_itself() {
        let of = |document: Value| value(&Raw::of(&document));
        assert_eq!(of(json!([{ "a": 1 }])), json!([{ "a": 1 }]));
        assert_eq!(of(json!({ "content": "a page" })), json!({ "content": "a page" }));
        assert_eq!(of(json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }] })), json!({ "a": 1 }));
        assert_eq!(of(json!({ "content": [{ "type": "text", "text": "words" }] })), json!("words"));
    }

    #[test]
    fn rows_are_those_of_a_list_of_objects() {
        for (value, expected) in [
            (json!([{}, {}]), Some(2)),
            (json!({ "a": [{}], "b": [{}, {}, {}], "c": [1] }), Some(3)),
            (json!([1, {}]), None),
            (json!([]), None),
            (json!({ "a": { "b": [{}] } }), None),
            (json!("words"), None),
        ] {
            assert_eq!(rows(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_text_costs_what_it_says_and_not_its_quotes() {
        let sample = RecordedResult { module: "m".into(), tool: "t".into(), value: json!("two\nlines"), shape: None };
        let weighed = sample.measure_tokens();
        assert_eq!(
            (weighed.plain, weighed.compact, weighed.shaped),
            (tokens("two\nlines"), tokens("two\nlines"), None)
        );
    }
}

//! What a model reads of the answers: as the tool gives them, in their compact form, and with the fields that are worth
//! reading where somebody named them. Nothing is left out to fit a budget, so that what is compared is the same.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use hikite_core::answer::Answer;
use hikite_core::compact::{Shape, compact};
use hikite_core::json::Raw;
use hikite_core::select::Selector;
use serde_json::Value;

use super::count::tokens;
use super::recorded::{json_files, read as read_json};

/// In a folder of answers: the fields worth reading, by the key of the tool.
const SHAPES: &str = "shapes.json";
const HINT: &str =
    "hint: files like github/list_issues.json or github.list_issues.json, with what the tool answered";

/// An answer of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) module: String,
    pub(crate) tool: String,
    pub(crate) value: Value,
    pub(crate) shape: Option<Shape>,
}

/// What it costs.
#[derive(Clone, Debug)]
pub(crate) struct Weighed {
    pub(crate) module: String,
    pub(crate) tool: String,
    /// How many rows it has, where it is a list of objects or holds one.
    pub(crate) rows: Option<usize>,
    /// As JSON without blanks; a text as it is.
    pub(crate) plain: usize,
    pub(crate) compact: usize,
    /// With its shape, where one is known.
    pub(crate) shaped: Option<usize>,
}

impl Sample {
    pub(crate) fn weigh(&self) -> Weighed {
        let plain = match &self.value {
            Value::String(text) => tokens(text),
            value => tokens(&value.to_string()),
        };
        let weigh = |shape: Option<&Shape>| tokens(&compact(&self.value, shape, usize::MAX).text);
        Weighed {
            module: self.module.clone(),
            tool: self.tool.clone(),
            rows: rows(&self.value),
            plain,
            compact: weigh(None),
            shaped: self.shape.as_ref().map(|shape| weigh(Some(shape))),
        }
    }
}

/// The recorded answers of a folder: `MODULE/TOOL*.json` or `MODULE.TOOL*.json`, each a `tools/call` result or the value
/// itself. `known` are the keys of tools, by which the end of a tool's name is found.
pub(crate) fn read(folder: &Path, known: &[String]) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for (module, file) in files(folder)? {
        let (module, rest) = match module {
            Some(module) => (module, stem(&file)),
            None => split(&file)?,
        };
        let tool = tool(&module, &rest, known);
        samples.push(Sample { value: value(&read_json(&file)?), module, tool, shape: None });
    }
    if samples.is_empty() {
        bail!("there are no recorded answers in {}\n{HINT}", folder.display());
    }
    let mut shapes = shapes(&folder.join(SHAPES))?;
    for sample in &mut samples {
        sample.shape = shapes.get(&format!("{}:{}", sample.module, sample.tool)).cloned();
    }
    shapes
        .retain(|key, _| !samples.iter().any(|sample| *key == format!("{}:{}", sample.module, sample.tool)));
    match shapes.keys().min() {
        Some(key) => bail!("{SHAPES} names `{key}`, of which there is no answer"),
        None => Ok(samples),
    }
}

/// The value that a result stands for, or the file as it is.
pub(crate) fn value(document: &Raw) -> Value {
    let is_result =
        document.object().is_some_and(|members| members.get("content").and_then(Raw::items).is_some());
    if is_result { Answer::read(document).value.value() } else { document.value() }
}

/// With the module that their folder names.
fn files(folder: &Path) -> Result<Vec<(Option<String>, PathBuf)>> {
    let beside =
        json_files(folder)?.into_iter().filter(|file| !file.ends_with(SHAPES)).map(|file| (None, file));
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

fn split(file: &Path) -> Result<(String, String)> {
    let stem = stem(file);
    let parts = stem.split_once('.').filter(|(module, tool)| !module.is_empty() && !tool.is_empty());
    let (module, rest) = parts.ok_or_else(|| anyhow!("{} names no tool\n{HINT}", file.display()))?;
    Ok((module.to_owned(), rest.to_owned()))
}

/// The longest known name that the file's begins with, else what stands before the first dot.
fn tool(module: &str, rest: &str, known: &[String]) -> String {
    let names = known.iter().filter_map(|key| key.strip_prefix(module)?.strip_prefix(':'));
    let fitting = names.filter(|name| rest.starts_with(name)).max_by_key(|name| name.len());
    fitting.unwrap_or_else(|| rest.split('.').next().unwrap_or(rest)).to_owned()
}

fn shapes(file: &Path) -> Result<HashMap<String, Shape>> {
    if !file.exists() {
        return Ok(HashMap::new());
    }
    let members = read_json(file)?.decode::<HashMap<String, String>>();
    let members = members.with_context(|| format!("{}: not an object of texts", file.display()))?;
    let shape = |(key, text): (String, String)| match Selector::parse(&text) {
        Ok(Selector::Fields(fields)) => Ok((key, Shape::Pick(fields))),
        Ok(Selector::Path(_) | Selector::Jq(_)) => Err(anyhow!("{}: `{key}`: must be a list of fields", file.display())),
        Err(wrong) => Err(anyhow!("{}: `{key}`: {wrong}", file.display())),
    };
    members.into_iter().map(shape).collect()
}

fn rows(value: &Value) -> Option<usize> {
    let rows = |value: &Value| {
        let items = value.as_array().filter(|items| !items.is_empty())?;
        items.iter().all(Value::is_object).then_some(items.len())
    };
    let inside = || value.as_object()?.values().filter_map(rows).max();
    rows(value).or_else(inside)
}

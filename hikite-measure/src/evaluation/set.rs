//! Labelled sets: tools, and queries with their relevant tools, one JSON object per line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::search::ToolDocument;
use hikite_core::search::document::parameters;
use hikite_core::suggestion;
use hikite_core::view::View;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub const QUESTIONS: &str = "queries.jsonl";
pub(crate) const TOOLS: &str = "tools.jsonl";

#[derive(Debug)]
pub struct LabelledSet {
    pub(crate) name: String,
    pub(crate) documents: Vec<ToolDocument>,
    pub(crate) questions: Vec<LabelledQuery>,
}

/// A query with the indexes and grades of its relevant tools.
#[derive(Debug)]
pub(crate) struct LabelledQuery {
    pub(crate) query: String,
    pub(crate) right: Vec<(usize, f64)>,
}

/// The tools of a set, by id.
#[derive(Debug)]
pub struct LabelledTools {
    documents: Vec<ToolDocument>,
    places: HashMap<String, usize>,
}

#[derive(Deserialize)]
struct ToolLine {
    id: String,
    #[serde(default)]
    server: String,
    name: String,
    description: Option<String>,
    schema: Option<serde_json::Value>,
    server_title: Option<String>,
    server_description: Option<String>,
}

#[derive(Deserialize)]
struct QuestionLine {
    query: String,
    relevant: Vec<String>,
    #[serde(default)]
    grades: HashMap<String, f64>,
}

impl LabelledSet {
    /// Reads a folder with tools and queries.
    pub fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().map_or_else(|| "set".into(), |name| name.to_string_lossy().into_owned());
        Self::of(name, &folder.join(QUESTIONS), LabelledTools::read(&folder.join(TOOLS))?)
    }

    /// Reads the queries of a file for known tools.
    pub fn of(name: String, questions: &Path, tools: LabelledTools) -> Result<Self> {
        let lines: Vec<(String, QuestionLine)> = lines(questions)?;
        let questions = lines.into_iter().map(|(place, line)| {
            let right = line.relevant.iter().map(|id| {
                let at = tools.place(id).with_context(|| place.clone())?;
                Ok((at, line.grades.get(id).copied().unwrap_or(1.0)))
            });
            let right = right.collect::<Result<Vec<_>>>()?;
            if right.is_empty() {
                bail!("{place}: `relevant` contains no tool");
            }
            Ok(LabelledQuery { query: line.query, right })
        });
        let questions = questions.collect::<Result<Vec<_>>>()?;
        Ok(Self { name, documents: tools.documents, questions })
    }

    /// Splits the queries of each tool: every other one is remembered, up to `count` of them; the rest is run.
    pub(crate) fn halves(&self, count: usize) -> (Vec<&LabelledQuery>, Vec<&LabelledQuery>) {
        let mut met: HashMap<usize, usize> = HashMap::new();
        let (mut remembered, mut evaluated) = (Vec::new(), Vec::new());
        for labelled in &self.questions {
            let met = met.entry(labelled.right[0].0).or_default();
            if *met % 2 == 1 {
                evaluated.push(labelled);
            } else if *met / 2 < count {
                remembered.push(labelled);
            }
            *met += 1;
        }
        (remembered, evaluated)
    }
}

impl LabelledTools {
    /// Reads the tools of a file.
    pub fn read(file: &Path) -> Result<Self> {
        let mut tools = Self { documents: Vec::new(), places: HashMap::new() };
        for (place, line) in lines::<ToolLine>(file)? {
            let about: Vec<&str> = [&line.server_title, &line.server_description]
                .into_iter()
                .filter_map(|text| text.as_deref().filter(|text| !text.is_empty()))
                .collect();
            let parameters = line.schema.map(|schema| parameters(&Raw::of(&schema))).unwrap_or_default();
            let key = ToolKey::new(line.server, line.name.as_str());
            let description = line.description.unwrap_or_default();
            if tools.places.insert(line.id.clone(), tools.documents.len()).is_some() {
                bail!("{place}: the tool `{}` is defined twice", line.id);
            }
            tools.documents.push(ToolDocument::new(key, line.name, about.join(". "), description, parameters));
        }
        Ok(tools)
    }

    /// Returns the enabled tools of a catalog, by key, and by name where the name is unique.
    pub fn of(view: &View) -> Self {
        let modules = view.modules().iter();
        let tools = modules.flat_map(|module| module.tools.iter().map(move |tool| (module, tool)));
        let documents: Vec<ToolDocument> =
            tools.filter(|(_, tool)| tool.is_enabled()).map(|(module, tool)| ToolDocument::of(module, tool)).collect();
        let mut names: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, document) in documents.iter().enumerate() {
            names.entry(&document.name).or_default().push(at);
        }
        let unique = names.into_iter().filter(|(_, places)| places.len() == 1);
        let mut places: HashMap<String, usize> = unique.map(|(name, places)| (name.to_owned(), places[0])).collect();
        places.extend(documents.iter().enumerate().map(|(at, document)| (document.key.to_string(), at)));
        Self { documents, places }
    }

    fn place(&self, id: &str) -> Result<usize> {
        self.places.get(id).copied().with_context(|| {
            let near = suggestion::did_you_mean(id, self.places.keys().map(String::as_str));
            let hint = near.map(|near| format!(". {near}")).unwrap_or_default();
            format!("there is no tool `{id}`{hint}")
        })
    }
}

/// Returns the folders with queries: the folder itself, or else its subfolders.
pub fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder.join(QUESTIONS).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut sets: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.join(QUESTIONS).is_file()).collect();
    if sets.is_empty() {
        bail!("`{}` has no `{QUESTIONS}`, and none of its folders has one", folder.display());
    }
    sets.sort();
    Ok(sets)
}

/// Parses each non-empty line of a file, with its position.
fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<(String, T)>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let lines = lines.map(|(at, line)| {
        let place = format!("{}:{}", file.display(), at + 1);
        let read = serde_json::from_str(line).with_context(|| place.clone())?;
        Ok((place, read))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str =
        r#"{"id":"a:read","server":"a","name":"read","description":"Reads","schema":{"properties":{"path":{}}}}"#;

    fn read(tools: &str, questions: &str) -> Result<LabelledSet> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(TOOLS), tools).expect("a file");
        std::fs::write(folder.path().join(QUESTIONS), questions).expect("a file");
        LabelledSet::read(folder.path())
    }

    #[track_caller]
    fn fails(tools: &str, questions: &str, expected: &str) {
        let error = format!("{:#}", read(tools, questions).expect_err("wrong"));
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_set_is_read_with_its_grades() {
        let question = r#"{"query":"q","relevant":["a:read"],"grades":{"a:read":2}}"#;
        let set = read(TOOL, &format!("{question}\n\n")).expect("a set");
        assert_eq!(set.questions[0].right, [(0, 2.0)]);
        assert_eq!(set.documents[0].parameters, [("path".to_owned(), String::new())]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let question = r#"{"query":"q","relevant":["a:read"]}"#;
        fails(&format!("{TOOL}\n{TOOL}"), question, "tools.jsonl:2: the tool `a:read` is defined twice");
        fails("{", question, "tools.jsonl:1");
        fails(TOOL, &format!("{question}\n\n{{\"query\":1}}"), "queries.jsonl:3: invalid type");
        let unknown = r#"{"query":"q","relevant":["a:reed"]}"#;
        fails(TOOL, unknown, "queries.jsonl:1: there is no tool `a:reed`. Did you mean `a:read`?");
        fails(TOOL, r#"{"query":"q","relevant":[]}"#, "queries.jsonl:1: `relevant` contains no tool");
    }

    #[test]
    fn one_half_is_remembered_and_the_other_asked() {
        let question = r#"{"query":"q","relevant":["a:read"]}"#;
        let set = read(TOOL, &[question; 6].join("\n")).expect("a set");
        let (remembered, evaluated) = set.halves(2);
        assert_eq!((remembered.len(), evaluated.len()), (2, 3));
    }
}

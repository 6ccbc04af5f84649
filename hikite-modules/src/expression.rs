//! Expressions of module files. Plain paths are evaluated directly; everything else is jq, compiled on first use.
//! Module files are reviewed before they are installed, so their programs run without limits.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use hikite_core::error::{Error, ErrorKind};
use hikite_core::selector::ValuePath;
use serde_json::Value;

use crate::jq::JqProgram;
use crate::scope::VariableScope;

/// Definitions and variables available to all expressions of a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpressionNames {
    pub(crate) definitions: Arc<str>,
    pub(crate) variables: Arc<HashSet<String>>,
}

pub(crate) struct Expression {
    text: Box<str>,
    form: ExpressionKind,
}

enum ExpressionKind {
    Path(ValuePath),
    /// A single variable.
    Variable(Box<str>),
    Program {
        names: ExpressionNames,
        used: Vec<String>,
        compiled: OnceLock<Result<JqProgram, String>>,
    },
}

impl Expression {
    pub(crate) fn new(text: &str, names: &ExpressionNames) -> Self {
        let trimmed = text.trim();
        let form = if let Ok(path) = ValuePath::parse(trimmed) {
            ExpressionKind::Path(path)
        } else if let Some(name) = trimmed.strip_prefix('$').filter(|name| names.variables.contains(*name)) {
            ExpressionKind::Variable(name.into())
        } else {
            let used = used(trimmed, &names.variables);
            ExpressionKind::Program { names: names.clone(), used, compiled: OnceLock::new() }
        };
        Self { text: trimmed.into(), form }
    }

    /// Compiles the expression and returns its error, if any.
    pub(crate) fn compile_error(&self) -> Option<String> {
        match &self.form {
            ExpressionKind::Path(_) | ExpressionKind::Variable(_) => None,
            ExpressionKind::Program { .. } => self.program().err().map(|wrong| format!("`{}`: {wrong}", self.shown())),
        }
    }

    /// Returns the variables that it uses.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        let (one, several) = match &self.form {
            ExpressionKind::Path(_) => (None, &[][..]),
            ExpressionKind::Variable(name) => (Some(&**name), &[][..]),
            ExpressionKind::Program { used, .. } => (None, used.as_slice()),
        };
        one.into_iter().chain(several.iter().map(String::as_str))
    }

    /// Evaluates to one value. Several outputs, and all matches of a path with `[]`, become a list; no output becomes
    /// null.
    pub(crate) fn one(&self, input: &Value, scope: &VariableScope<'_>) -> Result<Value, Error> {
        match &self.form {
            ExpressionKind::Path(path) if path.is_single() => Ok(path.pick(input).unwrap_or_default()),
            ExpressionKind::Path(path) => Ok(path.all(input).into_iter().cloned().collect()),
            ExpressionKind::Variable(name) => Ok(scope.get(name).clone()),
            ExpressionKind::Program { .. } => {
                let mut outputs = self.run(input, scope)?;
                Ok(match outputs.len() {
                    0 => Value::Null,
                    1 => outputs.remove(0),
                    _ => Value::Array(outputs),
                })
            }
        }
    }

    /// Evaluates to several values. A plain path to a list yields its elements.
    pub(crate) fn each<'v>(&self, input: &'v Value, scope: &VariableScope<'_>) -> Result<Vec<Cow<'v, Value>>, Error> {
        let outputs = match &self.form {
            ExpressionKind::Path(path) => {
                let rows = path.rows(input).unwrap_or_default();
                return Ok(rows.into_iter().map(Cow::Borrowed).collect());
            }
            ExpressionKind::Variable(name) => vec![scope.get(name).clone()],
            ExpressionKind::Program { .. } => self.run(input, scope)?,
        };
        // A program may return its rows one by one or as one list.
        let outputs = match <[Value; 1]>::try_from(outputs) {
            Ok([Value::Array(items)]) => items,
            Ok([Value::Null]) => Vec::new(),
            Ok([one]) => vec![one],
            Err(several) => several,
        };
        Ok(outputs.into_iter().map(Cow::Owned).collect())
    }

    /// Returns `true` if the value is neither null nor false.
    pub(crate) fn holds(&self, input: &Value, scope: &VariableScope<'_>) -> Result<bool, Error> {
        Ok(!matches!(self.one(input, scope)?, Value::Null | Value::Bool(false)))
    }

    fn run(&self, input: &Value, scope: &VariableScope<'_>) -> Result<Vec<Value>, Error> {
        let ExpressionKind::Program { used, .. } = &self.form else { return Ok(Vec::new()) };
        let outcome = self.program().map(|program| program.outputs(input, used.iter().map(|name| scope.get(name))));
        match outcome {
            Ok(Ok(outputs)) => Ok(outputs),
            Ok(Err(trouble)) => Err(self.fails(&trouble.to_string())),
            Err(wrong) => Err(self.fails(wrong)),
        }
    }

    fn program(&self) -> Result<&JqProgram, &str> {
        let ExpressionKind::Program { names, used, compiled } = &self.form else {
            return Err("there is no program");
        };
        let compile = || {
            let variables: Vec<&str> = used.iter().map(String::as_str).collect();
            JqProgram::compile_with(&names.definitions, &self.text, &variables).map_err(|wrong| wrong.to_string())
        };
        compiled.get_or_init(compile).as_ref().map_err(String::as_str)
    }

    fn shown(&self) -> String {
        let line = self.text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(80).collect();
        if shown.len() < self.text.len() { format!("{shown}…") } else { shown }
    }

    fn fails(&self, why: &str) -> Error {
        let shown = self.shown();
        Error::new(ErrorKind::ToolExecution, format!("The expression `{shown}` of the module failed: {why}.")).hint(
            "Call the tool with `format: \"raw\"` to get the response unchanged. The module file may need a \
             correction.",
        )
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// Returns the variables in a text, in order and without duplicates.
fn used(text: &str, known: &HashSet<String>) -> Vec<String> {
    let mut used: Vec<String> = Vec::new();
    for rest in text.split('$').skip(1) {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = &rest[..end];
        if known.contains(name) && !used.iter().any(|other| other == name) {
            used.push(name.to_owned());
        }
    }
    used
}

//! Context of the checks of all sections: variable expansion, secrets from files, and problems with a position.

use std::io;
use std::path::{Path as FilePath, PathBuf};

use super::expand::{self, literal};
use super::position::ConfigPath;
use super::problem::ProblemCollector;

/// The environment and file system as the config sees them, so that loading depends only on its arguments.
#[derive(Clone, Copy)]
pub struct ConfigEnvironment<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub read: &'a dyn Fn(&FilePath) -> io::Result<String>,
}

impl std::fmt::Debug for ConfigEnvironment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConfigEnvironment")
    }
}

pub(crate) struct ConfigChecker<'a, 'r> {
    pub(crate) report: &'a mut ProblemCollector<'r>,
    pub(crate) environment: ConfigEnvironment<'a>,
    /// Base folder of relative paths in the file.
    pub(crate) folder: &'a FilePath,
}

impl ConfigChecker<'_, '_> {
    /// Expands the variables of a text; `None` if that failed and was reported.
    pub(crate) fn expand(&mut self, path: &ConfigPath<'_>, text: &str) -> Option<String> {
        match expand::expand(text, self.environment.env) {
            Ok(text) => Some(text),
            Err(error) => self.fail(path, error.to_string(), error.hint()),
        }
    }

    /// Expands the variables of a template; braces in their values are escaped.
    pub(crate) fn expand_literally(&mut self, path: &ConfigPath<'_>, text: &str) -> Option<String> {
        let env = self.environment.env;
        match expand::expand(text, &|name| env(name).as_deref().map(literal)) {
            Ok(text) => Some(text),
            Err(error) => self.fail(path, error.to_string(), error.hint()),
        }
    }

    /// Reads a file that holds one secret, without the trailing line break.
    pub(crate) fn secret_file(&mut self, path: &ConfigPath<'_>, name: &str) -> Option<String> {
        let name = self.expand(path, name)?;
        let file = self.resolve(&name);
        match (self.environment.read)(&file) {
            Ok(text) => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                let hint = "Relative paths start at the folder of the config file.";
                self.fail(path, format!("cannot read `{}`: {error}", file.display()), hint)
            }
        }
    }

    /// Resolves a path: `~/` is the home folder, and relative paths start at the config file's folder.
    pub(crate) fn resolve(&self, written: &str) -> PathBuf {
        match written.strip_prefix("~/").zip((self.environment.env)("HOME")) {
            Some((rest, home)) => PathBuf::from(home).join(rest),
            None => self.folder.join(written),
        }
    }

    /// Reports an error and returns `None`.
    pub(crate) fn fail<T>(&mut self, path: &ConfigPath<'_>, message: String, hint: impl Into<String>) -> Option<T> {
        self.report.error(path, message, Some(hint.into()));
        None
    }
}

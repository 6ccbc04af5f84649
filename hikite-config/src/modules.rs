//! The `modules` section: the enabled services, and the folder of further ones.

use std::path::PathBuf;

use hikite_core::suggestion::did_you_mean;
use hikite_modules::{BUILTIN, TextLanguage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::invalid_entry::{EntryId, EntryKind};
use super::position::ConfigPath;

/// The services that come with hikite, and those of the owner's own module files.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Modules")]
pub(crate) struct ModulesFile {
    /// Services that come with hikite: `true` for all (the default), `false` for none, or the names of some.
    builtin: Option<BuiltinFile>,
    /// A folder of module files (`*.yaml`). It is followed while hikite runs.
    dir: Option<String>,
    /// The language of descriptions and prompts.
    language: Option<LanguageWord>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum BuiltinFile {
    All(bool),
    Some(Vec<String>),
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum LanguageWord {
    En,
    Ja,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModulesSection {
    /// Names of the enabled built-in services.
    pub builtin: Vec<&'static str>,
    pub dir: Option<PathBuf>,
    pub language: TextLanguage,
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &ModulesFile) -> ModulesSection {
    let all = || BUILTIN.iter().map(|(name, _)| *name);
    let builtin = match &raw.builtin {
        None | Some(BuiltinFile::All(true)) => all().collect(),
        Some(BuiltinFile::All(false)) => Vec::new(),
        Some(BuiltinFile::Some(names)) => {
            for (place, name) in names.iter().enumerate().filter(|(_, name)| !all().any(|known| known == *name)) {
                let hint = did_you_mean(name, all());
                let known = all().collect::<Vec<_>>().join(", ");
                let hint = hint.unwrap_or_else(|| format!("Available services: {known}."));
                let id = EntryId { kind: EntryKind::Service, name: name.as_str().into() };
                let message = format!("there is no service `{name}`");
                check.report.error_of(id, &path.key("builtin").index(place), message, hint);
            }
            all().filter(|known| names.iter().any(|name| name == known)).collect()
        }
    };
    let dir = raw.dir.as_ref().and_then(|dir| check.expand(&path.key("dir"), dir)).map(|dir| check.resolve(&dir));
    let language = match raw.language {
        None | Some(LanguageWord::En) => TextLanguage::English,
        Some(LanguageWord::Ja) => TextLanguage::Japanese,
    };
    ModulesSection { builtin, dir, language }
}

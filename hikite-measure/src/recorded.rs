//! Recorded tool lists as modules: one JSON file per server with its `tools/list` result and optional metadata. They
//! are listed like a running server, but cannot be called.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use hikite_core::caller::SessionId;
use hikite_core::catalog::ModuleRule;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceState};

const HINT: &str =
    "hint: Use one JSON file per server, such as {\"server\": \"git\", \"description\": \"…\", \"tools\": […]}.";

#[derive(Debug)]
struct RecordedSource(Arc<Listing>);

/// Returns a module for every list in a folder, sorted by file name.
pub fn modules(folder: &Path) -> Result<Vec<ModuleRule>> {
    let files = json_files(folder)?;
    let modules: Vec<ModuleRule> = files.iter().map(|file| module(file)).collect::<Result<_>>()?;
    if modules.is_empty() {
        bail!("There are no recorded lists in {}.\n{HINT}", folder.display());
    }
    for (at, module) in modules.iter().enumerate() {
        if modules[..at].iter().any(|other| other.name == module.name) {
            bail!("{}: two files contain lists of `{}`.", folder.display(), module.name);
        }
    }
    Ok(modules)
}

/// Returns the `.json` files of a folder, sorted.
pub(super) fn json_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn read(file: &Path) -> Result<Raw> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Raw::parse(bytes).with_context(|| format!("{} is not JSON", file.display()))
}

fn module(file: &Path) -> Result<ModuleRule> {
    let wrong = || anyhow!("{} is not a recorded list.\n{HINT}", file.display());
    let list = read(file)?.object().ok_or_else(wrong)?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = list.text("server").or(stem).filter(|name| !name.is_empty()).ok_or_else(wrong)?;
    let items = |kind: ListKind| {
        let items = list.get(kind.member()).and_then(Raw::items).unwrap_or_default();
        items.into_iter().filter_map(|item| ListItem::read(kind, item)).collect::<Vec<_>>()
    };
    list.get(ListKind::Tools.member()).and_then(Raw::items).ok_or_else(wrong)?;
    let listing = Listing {
        tools: items(ListKind::Tools),
        resources: items(ListKind::Resources),
        templates: items(ListKind::Templates),
        prompts: items(ListKind::Prompts),
        info: list.get("serverInfo").and_then(Raw::object).unwrap_or_default(),
        instructions: list.text("instructions"),
        ..Listing::default()
    };
    let description = list.text("description").unwrap_or_default();
    Ok(ModuleRule { description, ..ModuleRule::new(name, Arc::new(RecordedSource(Arc::new(listing)))) })
}

impl Source for RecordedSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        Some(Arc::clone(&self.0))
    }

    fn state(&self) -> SourceState {
        SourceState::Idle
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call(&self, _: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let error = Error::new(ErrorKind::UpstreamUnavailable, "Only the list of this server was recorded.");
        Box::pin(std::future::ready(Err(error)))
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        folder
    }

    #[track_caller]
    fn fails(files: &[(&str, &str)], words: &str) {
        let folder = folder(files);
        let error = modules(folder.path()).expect_err("lists that cannot be measured");
        assert!(format!("{error:#}").contains(words), "{error:#}");
    }

    #[test]
    fn a_list_is_a_module() {
        let text = r#"{"server":"s","description":"d","tools":[{"name":"t"},{"no":"name"}],"prompts":[{"name":"p"}],"instructions":null}"#;
        let folder = folder(&[("b.json", text), ("a.json", r#"{"tools":[]}"#), ("README.md", "words")]);
        let found = modules(folder.path()).expect("two lists");
        let names: Vec<&str> = found.iter().map(|module| &*module.name).collect();
        assert_eq!((names, found[1].description.as_str()), (vec!["a", "s"], "d"));
        let listing = found[1].source.listing().expect("a list");
        assert_eq!((listing.tools.len(), listing.prompts.len()), (1, 1), "what has no name is nothing");
    }

    #[test]
    fn what_is_no_list_is_told() {
        fails(&[], "There are no recorded lists in ");
        fails(&[("a.json", "{")], "a.json is not JSON");
        fails(&[("a.json", r#"{"tools":{}}"#)], "a.json is not a recorded list.\nhint: Use one JSON file per server");
        fails(
            &[("a.json", r#"{"tools":[]}"#), ("b.json", r#"{"server":"a","tools":[]}"#)],
            "two files contain lists of `a`",
        );
        let error = modules(Path::new("/no/such/folder")).expect_err("no folder");
        assert!(format!("{error:#}").starts_with("cannot read /no/such/folder"), "{error:#}");
    }
}

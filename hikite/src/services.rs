//! The services of the house: those that come with hikite, and those that the owner describes in files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hikite_core::fault::Fault;
use hikite_modules::{BUILTIN, Language, Service, Settings};

use crate::config::Config;

/// What is read of a folder at most; more is not a module file.
const FILE_BYTES: u64 = 1024 * 1024;

/// Services by name, each with the text it was made of.
#[derive(Debug, Default)]
pub(crate) struct Services(HashMap<Arc<str>, Made>);

#[derive(Clone, Debug)]
struct Made {
    /// The file, or the name of what comes with hikite.
    from: String,
    text: Arc<str>,
    language: Language,
    service: Arc<Service>,
}

/// A module file that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) text: Result<String, String>,
}

impl Services {
    /// The services that the config names, in order. What is the same as before is the same service; a file that is wrong
    /// leaves what it was before, and is told. A server of the same name goes before a service.
    pub(crate) fn follow(&mut self, config: &Config, settings: &Settings) -> Vec<Arc<Service>> {
        let builtin = BUILTIN.iter().filter(|(name, _)| config.modules.builtin.contains(name));
        let mut texts: Vec<(String, Arc<str>)> =
            builtin.map(|(name, text)| ((*name).to_owned(), Arc::from(*text))).collect();
        for found in config.modules.dir.as_deref().map(files).unwrap_or_default() {
            let shown = found.path.display().to_string();
            match found.text {
                Ok(text) => texts.push((shown, text.into())),
                Err(error) => tracing::error!("{shown}: {error}"),
            }
        }
        let before = std::mem::take(&mut self.0);
        let mut services: Vec<Arc<Service>> = Vec::new();
        for (from, text) in texts {
            let known = before.values().find(|made| made.text == text && made.language == settings.language);
            let made = match known {
                Some(made) => made.clone(),
                None => match read(&text, settings) {
                    Ok(service) => {
                        Made { from, text, language: settings.language, service: Arc::new(service) }
                    }
                    Err(faults) => {
                        let was = before.values().find(|made| made.from == from);
                        let left = if was.is_some() {
                            "what it was before stays in force"
                        } else {
                            "it is left out"
                        };
                        tracing::error!("a module file is wrong, {left}:\n{}", shown(&from, &faults));
                        let Some(was) = was else { continue };
                        was.clone()
                    }
                },
            };
            let name = Arc::clone(&made.service.name);
            // The owner's own file stands in for what comes with hikite.
            services.retain(|service| service.name != name);
            let taken =
                config.servers.iter().any(|server| server.name == name) || config.disabled.contains(&name);
            if !taken {
                services.push(Arc::clone(&made.service));
            }
            self.0.insert(name, made);
        }
        services
    }
}

/// Files of our own are tried by our tests; those of others are looked through before they are used.
fn read(text: &str, settings: &Settings) -> Result<Service, Vec<Fault>> {
    let service = Service::read(text, settings)?;
    let is_ours = BUILTIN.iter().any(|(_, own)| *own == text);
    let problems = if is_ours { Vec::new() } else { service.problems() };
    if problems.is_empty() { Ok(service) } else { Err(problems) }
}

/// One line for each fault.
pub(crate) fn shown(from: &str, faults: &[Fault]) -> String {
    let line = |fault: &Fault| {
        let place = fault.pointer.trim_start_matches('/').replace('/', ".");
        if place.is_empty() {
            format!("{from}: {}", fault.message)
        } else {
            format!("{from}: {place}: {}", fault.message)
        }
    };
    faults.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The module files of a folder, by name.
pub(crate) fn files(folder: &Path) -> Vec<Found> {
    let paths = match paths(folder) {
        Ok(paths) => paths,
        Err(error) => {
            return vec![Found { path: folder.to_owned(), text: Err(format!("cannot be read: {error}")) }];
        }
    };
    paths
        .into_iter()
        .map(|path| {
            let is_long = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > FILE_BYTES);
            let text = if is_long {
                Err("is too long for a module file".to_owned())
            } else {
                std::fs::read_to_string(&path).map_err(|error| format!("cannot be read: {error}"))
            };
            Found { path, text }
        })
        .collect()
}

/// What changes when the files do.
pub(crate) fn stamp(folder: &Path) -> Vec<(PathBuf, Option<SystemTime>, u64)> {
    let stamp = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok();
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        (path, modified, metadata.map_or(0, |metadata| metadata.len()))
    };
    paths(folder).unwrap_or_default().into_iter().map(stamp).collect()
}

fn paths(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_module = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_module).collect();
    paths.sort();
    Ok(paths)
}

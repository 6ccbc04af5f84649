//! The service modules: built-in ones, and those described by files in the modules folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::SystemTime;

use hikite_config::Config;
use hikite_core::violation::Violation;
use hikite_egress::EgressClient;
use hikite_modules::{BUILTIN, Service, ServiceSettings, TextLanguage};

use crate::config_credential::ConfigCredentials;

/// Maximum size of a module file.
const FILE_BYTES: u64 = 1024 * 1024;

/// Loaded services by name.
#[derive(Debug, Default)]
pub(crate) struct Services(HashMap<Arc<str>, LoadedService>);

#[derive(Clone, Debug)]
struct LoadedService {
    /// Path of the file, or name of the built-in module.
    from: String,
    text: Arc<str>,
    language: TextLanguage,
    service: Arc<Service>,
}

/// A module file and its text.
#[derive(Debug)]
struct ModuleFileText {
    path: PathBuf,
    text: Result<String, String>,
}

impl Services {
    /// Returns the services that the config names, in order. An unchanged text keeps its service; an invalid file
    /// keeps its previous version and is logged. An upstream server hides a service of the same name.
    pub(crate) fn follow(&mut self, config: &Config, settings: &ServiceSettings) -> Vec<Arc<Service>> {
        let before = std::mem::take(&mut self.0);
        let mut services: Vec<Arc<Service>> = Vec::new();
        for (from, made) in make(texts(config), &before, settings) {
            let made = match made {
                Ok(made) => made,
                Err(error) => {
                    let was = before.values().find(|made| made.from == from);
                    let left = if was.is_some() { "the previous version stays active" } else { "it is skipped" };
                    tracing::error!("a module file is invalid, {left}:\n{error}");
                    let Some(was) = was else { continue };
                    was.clone()
                }
            };
            let name = Arc::clone(&made.service.name);
            // A file in the modules folder replaces a built-in module of the same name.
            services.retain(|service| service.name != name);
            let taken = config.servers.iter().any(|server| server.name == name) || config.disabled.contains(&name);
            if !taken {
                services.push(Arc::clone(&made.service));
            }
            self.0.insert(name, made);
        }
        services
    }
}

/// Builds a service from each text. New texts are parsed in parallel, because start-up waits for all of them.
fn make(
    texts: Vec<(String, Result<Arc<str>, String>)>,
    before: &HashMap<Arc<str>, LoadedService>,
    settings: &ServiceSettings,
) -> Vec<(String, Result<LoadedService, String>)> {
    let one = |from: &str, text: Arc<str>| match read(&text, settings) {
        Ok(service) => {
            Ok(LoadedService { from: from.to_owned(), text, language: settings.language, service: Arc::new(service) })
        }
        Err(faults) => Err(shown(from, &faults)),
    };
    let is_known = |made: &&LoadedService, text: &Arc<str>| made.text == *text && made.language == settings.language;
    std::thread::scope(|scope| {
        let making: Vec<_> = texts
            .into_iter()
            .map(|(from, text)| {
                let known = text.as_ref().ok().and_then(|text| before.values().find(|made| is_known(made, text)));
                let made = match (known, text) {
                    (Some(known), _) => ServiceLoad::Done(Ok(known.clone())),
                    (None, Err(error)) => ServiceLoad::Done(Err(format!("{from}: {error}"))),
                    (None, Ok(text)) => {
                        let from = from.clone();
                        ServiceLoad::Reading(scope.spawn(move || one(&from, text)))
                    }
                };
                (from, made)
            })
            .collect();
        making.into_iter().map(|(from, made)| (from, made.finish())).collect()
    })
}

enum ServiceLoad<'scope> {
    Done(Result<LoadedService, String>),
    Reading(ScopedJoinHandle<'scope, Result<LoadedService, String>>),
}

impl ServiceLoad<'_> {
    fn finish(self) -> Result<LoadedService, String> {
        match self {
            Self::Done(made) => made,
            Self::Reading(reader) => reader.join().unwrap_or_else(|_| Err("it could not be read".into())),
        }
    }
}

/// Returns the origin and text of every module that the config names.
fn texts(config: &Config) -> Vec<(String, Result<Arc<str>, String>)> {
    let builtin = BUILTIN.iter().filter(|(name, _)| config.modules.builtin.contains(name));
    let builtin = builtin.map(|(name, text)| ((*name).to_owned(), Ok(Arc::from(*text))));
    let files = config.modules.dir.as_deref().map(files).unwrap_or_default().into_iter();
    builtin.chain(files.map(|found| (found.path.display().to_string(), found.text.map(Arc::from)))).collect()
}

/// A module that the config names, valid or not.
#[derive(Debug)]
pub(crate) struct ConfiguredModule {
    /// Path of the file; `None` for a built-in module.
    pub(crate) file: Option<String>,
    pub(crate) read: Result<Service, Vec<Violation>>,
    /// The file or server that replaces this module.
    pub(crate) hidden_by: Option<String>,
}

/// Returns all modules that the config names, in order, including invalid and replaced ones.
pub(crate) fn configured(config: &Config, settings: &ServiceSettings) -> Vec<ConfiguredModule> {
    let mut all: Vec<ConfiguredModule> = Vec::new();
    for (from, text) in texts(config) {
        let file = (!BUILTIN.iter().any(|(name, _)| *name == from)).then(|| from.clone());
        let read = text.map_err(|wrong| vec![Violation::new("", wrong)]).and_then(|text| read(&text, settings));
        let mut hidden_by = None;
        if let Ok(service) = &read {
            let is_same = |configured: &&mut ConfiguredModule| {
                configured.read.as_ref().is_ok_and(|other| other.name == service.name)
            };
            if let Some(before) = all.iter_mut().filter(|configured| configured.hidden_by.is_none()).find(is_same) {
                let name = Path::new(&from).file_name();
                before.hidden_by = name.map(|name| name.to_string_lossy().into_owned());
            }
            let is_server = config.servers.iter().any(|server| server.name == service.name);
            if is_server || config.disabled.contains(&service.name) {
                hidden_by = Some(format!("mcpServers.{}", service.name));
            }
        }
        all.push(ConfiguredModule { file, read, hidden_by });
    }
    all
}

/// Returns settings for inspecting modules without calling them.
pub(crate) fn settings(config: Option<&Config>) -> ServiceSettings {
    let accounts = ConfigCredentials::default();
    accounts.follow(config.map(|config| config.providers.as_slice()).unwrap_or_default());
    ServiceSettings {
        client: EgressClient::new(),
        credential_provider: Arc::new(accounts),
        limits: Arc::new(config.map(|config| config.limits.clone()).unwrap_or_default()),
        language: config.map(|config| config.modules.language).unwrap_or_default(),
    }
}

/// Parses a module. Built-in modules are covered by our tests; others are also checked for problems.
fn read(text: &str, settings: &ServiceSettings) -> Result<Service, Vec<Violation>> {
    let service = Service::read(text, settings)?;
    let is_ours = BUILTIN.iter().any(|(_, own)| *own == text);
    let compile_errors = if is_ours { Vec::new() } else { service.compile_errors() };
    if compile_errors.is_empty() { Ok(service) } else { Err(compile_errors) }
}

/// Formats the faults, one per line.
pub(crate) fn shown(from: &str, faults: &[Violation]) -> String {
    faults.iter().map(|fault| line(from, fault)).collect::<Vec<_>>().join("\n")
}

/// Formats a fault as `FILE: tools.search.request: …`.
pub(crate) fn line(from: &str, fault: &Violation) -> String {
    match place(fault).as_str() {
        "" => format!("{from}: {}", fault.message),
        place => format!("{from}: {place}: {}", fault.message),
    }
}

/// Converts the JSON pointer of a fault to a dotted path.
pub(crate) fn place(fault: &Violation) -> String {
    fault.pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
}

/// Returns the module files of a folder, sorted by name.
fn files(folder: &Path) -> Vec<ModuleFileText> {
    let paths = match paths(folder) {
        Ok(paths) => paths,
        Err(error) => {
            return vec![ModuleFileText { path: folder.to_owned(), text: Err(format!("cannot be read: {error}")) }];
        }
    };
    paths.into_iter().map(|path| ModuleFileText { text: text_of(&path), path }).collect()
}

/// Reads the text of a module file.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > FILE_BYTES) {
        return Err("is too large for a module file".to_owned());
    }
    std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
}

/// Returns the names, modification times and sizes of the module files, for change detection.
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

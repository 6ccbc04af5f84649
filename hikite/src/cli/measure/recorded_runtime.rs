//! A runtime of recorded lists for measurements, with nothing on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use hikite_config::{Config, ConfigEnvironment};
use hikite_core::catalog::ModuleRule;
use hikite_core::category::CategoryRule;
use hikite_core::tool_selection::Selection;
use hikite_measure::recorded_modules;
use hikite_store::StoreUrl;

use crate::runtime::{Programs, Runtime};

/// Starts a runtime of the lists in a folder, each a module and a category, with the default config.
pub(crate) async fn start_recorded(folder: &Path, program: PathBuf) -> Result<Arc<Runtime>> {
    let modules = recorded_modules(folder)?;
    let outside = ConfigEnvironment { env: &|_| None, read: &|_| Err(std::io::ErrorKind::NotFound.into()) };
    let mut config = Config::parse("{}", Path::new("defaults"), outside)?;
    config.store = Some(StoreUrl::memory());
    config.audit.enabled = false;
    config.modules.builtin.clear();
    config.categories = modules.iter().map(category).collect();
    Runtime::start_with_modules(&config, Programs { guard: program, jq: None }, modules).await
}

fn category(module: &ModuleRule) -> Arc<CategoryRule> {
    Arc::new(CategoryRule {
        name: Arc::clone(&module.name),
        description: module.description.clone(),
        servers: vec![Arc::clone(&module.name)],
        selection: Selection::default(),
        skill: None,
        origin: hikite_core::origin::ConfigOrigin::File,
    })
}

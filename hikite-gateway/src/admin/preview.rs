//! Previews for administrators: the tool list that a model receives in a project, and the effect of permissions.

use std::sync::Arc;

use hikite_api::{Menu, PermissionsAnswer};
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::permission::Permissions;
use hikite_core::view::View;
use hikite_core::violation;

use crate::catalogs::Catalogs;
use crate::config_admin::ConfigAdmin;
use crate::discovery::Discovery;
use crate::lookup::Lookup;
use crate::off_worker::run_blocking;
use crate::snapshot::Snapshot;
use crate::surface::Surfaces;
use hikite_identity::People;

/// Counter name for estimated token counts.
const ESTIMATE: &str = "estimate";

#[derive(Debug)]
pub struct Previews {
    pub(crate) limits: Arc<Limits>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) lookup: Lookup,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) people: Arc<People>,
    /// Exact token counter, if available.
    pub(crate) config: Option<Arc<dyn ConfigAdmin>>,
}

impl Previews {
    /// Returns exactly the tools that a model is shown in a project, or outside any, and their token count. `asked`
    /// are the surfaces that the client asks for, `default` those of the config.
    pub async fn menu_object(
        &self,
        project: Option<&str>,
        asked: Option<Surfaces>,
        default: Surfaces,
    ) -> Result<Menu, Error> {
        let mut caller = self.people.owner();
        if let Some(name) = project {
            caller = caller.within(name.into());
            if self.catalogs.project_of(&caller).is_none() {
                return Err(Error::new(ErrorKind::NotFound, format!("There is no project `{name}`.")));
            }
        }
        let surfaces = self.catalogs.surfaces_for(&caller, asked, default)?;
        self.lookup.wait_for_listings(&caller).await;
        let tools = self.discovery.menu(&caller, surfaces);
        let (snapshot, limits, config) = (self.catalogs.snapshot(), Arc::clone(&self.limits), self.config.clone());
        let count = move || count_tokens(&snapshot, &limits, config.as_deref(), (&caller, surfaces));
        let weighed = tokio::task::spawn_blocking(count).await;
        let (sent, flat, counter) = weighed
            .map_err(|_| Error::new(ErrorKind::Internal, "The size of the tool list could not be estimated."))?;
        Ok(Menu {
            project: project.map(str::to_owned),
            surfaces: surfaces.names().into_iter().map(str::to_owned).collect(),
            tools: tools.iter().cloned().collect(),
            tokens: sent as u64,
            flat_tokens: flat as u64,
            counter: counter.to_owned(),
        })
    }

    /// Returns the keys of the tools that these permissions would show and hide.
    pub async fn preview_permissions(&self, form: &Raw) -> Result<PermissionsAnswer, Error> {
        let permissions = run_blocking(|| Permissions::read(form)).map_err(|faults| violation::error(&faults))?;
        self.lookup.wait_for_listings(&Caller::owner()).await;
        let snapshot = self.catalogs.snapshot();
        let view = run_blocking(|| View::restricted(&snapshot.catalog, &Arc::new(permissions)));
        let mut answer = PermissionsAnswer::default();
        for tool in snapshot.catalog.tools() {
            let list = if view.tool_by_key(&tool.key).is_some() { &mut answer.visible } else { &mut answer.hidden };
            list.push(tool.key.to_string());
        }
        Ok(answer)
    }
}

/// Returns the token counts of the caller's menu and of a flat list, and the name of the counter.
fn count_tokens(
    snapshot: &Snapshot,
    limits: &Limits,
    config: Option<&dyn ConfigAdmin>,
    (caller, surfaces): (&Caller, Surfaces),
) -> (usize, usize, &'static str) {
    let Some(config) = config else {
        let (sent, flat) = snapshot.token_estimate(caller, surfaces, limits);
        return (sent, flat, ESTIMATE);
    };
    let (_, counter) = config.count("");
    let count = |text: &str| config.count(text).0;
    let (sent, flat) = snapshot.token_counts(caller, surfaces, limits, count);
    (sent, flat, counter)
}

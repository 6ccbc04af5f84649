//! Previews for administrators: the tool list that a model receives in a project, and the effect of permissions.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::tokens;
use hikite_core::view::View;
use hikite_core::violation;

use crate::gateway::Gateway;
use crate::off_worker::run_blocking;
use crate::surface::Surfaces;

/// Counter name for estimated token counts.
const ESTIMATE: &str = "estimate";

impl Gateway {
    /// Returns exactly the tools that a model is shown in a project, or outside any, and their token count. `asked`
    /// are the surfaces that the client asks for, `default` those of the config.
    pub async fn menu_object(
        self: &Arc<Self>,
        project: Option<&str>,
        asked: Option<Surfaces>,
        default: Surfaces,
    ) -> Result<Object, Error> {
        let mut caller = self.people.owner();
        if let Some(name) = project {
            caller = caller.within(name.into());
            if self.project_of(&caller).is_none() {
                return Err(Error::new(ErrorKind::NotFound, format!("There is no project `{name}`.")));
            }
        }
        let surfaces = self.surfaces_for(&caller, asked, default)?;
        self.wait_for_listings(&caller).await;
        let tools = self.menu(&caller, surfaces);
        let gateway = Arc::clone(self);
        let weighed = tokio::task::spawn_blocking(move || gateway.count_tokens(&caller, surfaces)).await;
        let (sent, flat, counter) = weighed
            .map_err(|_| Error::new(ErrorKind::Internal, "The size of the tool list could not be estimated."))?;
        let mut object = Object::default();
        if let Some(name) = project {
            object.set("project", name);
        }
        Ok(object
            .with("surfaces", Raw::of(&surfaces.names()))
            .with("tools", Raw::array(tools.iter()))
            .with("tokens", Raw::of(&sent))
            .with("flatTokens", Raw::of(&flat))
            .with("counter", counter))
    }

    /// Returns the keys of the tools that these permissions would show and hide.
    pub async fn preview_permissions(&self, form: &Raw) -> Result<Object, Error> {
        let permissions = run_blocking(|| Permissions::read(form)).map_err(|faults| violation::error(&faults))?;
        self.wait_for_listings(&Caller::owner()).await;
        let snapshot = self.snapshot();
        let view = run_blocking(|| View::restricted(&snapshot.catalog, &Arc::new(permissions)));
        let (mut visible, mut hidden) = (Vec::new(), Vec::new());
        for tool in snapshot.catalog.tools() {
            let list = if view.tool_by_key(&tool.key).is_some() { &mut visible } else { &mut hidden };
            list.push(tool.key.to_string());
        }
        Ok(Object::default().with("visible", Raw::of(&visible)).with("hidden", Raw::of(&hidden)))
    }

    fn count_tokens(&self, caller: &Caller, surfaces: Surfaces) -> (usize, usize, &'static str) {
        let snapshot = self.snapshot();
        let Ok(config_admin) = self.config_admin() else {
            let (sent, flat) = snapshot.token_estimate(caller, surfaces, &self.limits);
            return (sent, flat, ESTIMATE);
        };
        let (_, counter) = config_admin.count("");
        let count = |text: &str| config_admin.count(text).0;
        let (sent, flat) = snapshot.token_counts(caller, surfaces, &self.limits, count);
        (sent, flat, counter)
    }
}

/// Returns the token counts of a menu and of a flat list of the view's tools.
pub(crate) fn count_tokens(view: &View, menu: &[Raw], count: impl Fn(&str) -> usize) -> (usize, usize) {
    let menu = menu.iter().map(|item| count(&item.as_str())).sum();
    let ready = view.ready_modules().flat_map(|module| &module.tools);
    let tools = ready.filter(|tool| tool.is_enabled());
    (menu, tools.map(|tool| count(&tool.definition.as_str())).sum())
}

/// Returns estimated token counts.
pub(crate) fn estimate_tokens(view: &View, menu: &[Raw]) -> (usize, usize) {
    count_tokens(view, menu, tokens::estimate)
}

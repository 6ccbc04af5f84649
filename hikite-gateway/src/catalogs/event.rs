//! Events of sources: changed lists lead to another catalog, the rest goes to the sessions that it concerns.

use std::sync::{Arc, Weak};

use hikite_core::catalog::Tool;
use hikite_core::listing::ListKind;
use hikite_core::source::{SourceEvent, SourceListener};
use hikite_core::view::View;

use super::Catalogs;
use crate::surface::{Surface, Surfaces};
use crate::viewer::Viewer;

impl Catalogs {
    /// Returns the listener that the source of a module reports to.
    pub fn listener(self: &Arc<Self>, module: impl Into<Arc<str>>) -> SourceListener {
        let (catalogs, module): (Weak<Self>, Arc<str>) = (Arc::downgrade(self), module.into());
        Arc::new(move |event| {
            if let Some(catalogs) = catalogs.upgrade() {
                catalogs.handle_event(&module, event);
            }
        })
    }

    fn handle_event(&self, module: &str, event: SourceEvent) {
        let snapshot = self.snapshot();
        match &event {
            SourceEvent::ListChanged => self.refresh(),
            SourceEvent::SessionListChanged { sessions } => self.overlay(sessions),
            SourceEvent::ListAnnounced { kinds, sessions } => {
                let concerns = |viewer: Viewer<'_>, surfaces, kind| {
                    let snapshot = self.snapshot_for(viewer);
                    shows(&snapshot.view_of(viewer.caller), module, surfaces, kind)
                };
                // Templates and skills are announced as resources.
                let list_of = |kind| match kind {
                    ListKind::Templates | ListKind::Skills => ListKind::Resources,
                    kind => kind,
                };
                let said = |viewer: Viewer<'_>, surfaces, kind| {
                    kinds.contains(&list_of(kind)) && concerns(viewer, surfaces, kind)
                };
                self.sessions.notify_list_changes(sessions.as_deref(), said);
            }
            SourceEvent::ResourceUpdated { params, .. } => {
                if let Some(uri) = params.object().and_then(|params| params.text("uri")) {
                    self.cache.invalidate_resource(&uri);
                }
                self.sessions.deliver_event(event, |caller| snapshot.view_of(caller).shows_module(module));
            }
            SourceEvent::Log { .. } | SourceEvent::ElicitationComplete { .. } => {
                self.sessions.deliver_event(event, |caller| snapshot.view_of(caller).module(module).is_some());
            }
        }
    }
}

/// Returns `true` if a list shown to a client contains something of a module.
fn shows(view: &View, module: &str, surfaces: Surfaces, kind: ListKind) -> bool {
    let Some(own) = view.module(module) else { return false };
    match kind {
        ListKind::Tools => surfaces.contains(Surface::Direct) && own.tools.iter().any(Tool::is_enabled),
        _ => own.listing.as_ref().is_some_and(|listing| !listing.of(kind).is_empty()),
    }
}

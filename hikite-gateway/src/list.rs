//! The MCP list methods: tools as the client's surfaces show them, and the resources, templates and prompts of all
//! modules.

use std::collections::HashSet;
use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::view::View;

use crate::gateway::Gateway;
use crate::surface::{self, Surface, Surfaces};
use crate::viewer::Viewer;

/// The requested page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    pub cursor: Option<String>,
}

impl Gateway {
    /// Returns one page of a list, as the result of the MCP method.
    pub async fn list<'a>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        surfaces: Surfaces,
        kind: ListKind,
        page: ListPage,
    ) -> Result<Raw, Error> {
        let viewer = viewer.into();
        let caller = viewer.caller;
        caller.require(Scopes::READ)?;
        if kind != ListKind::Tools || surfaces.needs_lists() {
            self.wait_for_client_listing(caller).await;
        }
        if kind == ListKind::Tools && surfaces.contains(Surface::Search) {
            // A client that sees the search tool will probably use it: load the index now.
            self.search.start_indexing();
        }
        let snapshot = self.snapshot_for(viewer);
        let items = snapshot.list(caller, surfaces, kind, &self.limits);
        if kind == ListKind::Tools && page.cursor.is_none() {
            let (sent, flat) = snapshot.token_estimate(caller, surfaces, &self.limits);
            self.token_savings.menu(flat, sent);
        }
        let start = read_cursor(page, items.len())?;
        let size = if self.limits.list_page == 0 { items.len() } else { self.limits.list_page };
        let end = items.len().min(start.saturating_add(size));
        let mut result = Object::default().with(kind.member(), Raw::array(&items[start..end]));
        if end < items.len() {
            result.set("nextCursor", end.to_string().as_str());
        }
        Ok(result.raw())
    }

    /// Returns the tools that these surfaces show right now, without waiting for listings. Used to measure the list,
    /// not to serve clients.
    pub fn menu(&self, caller: &Caller, surfaces: Surfaces) -> Arc<Vec<Raw>> {
        self.snapshot().list(caller, surfaces, ListKind::Tools, &self.limits)
    }

    /// Returns usage instructions for these surfaces, if the caller has the read scope.
    pub fn instructions(&self, caller: &Caller, surfaces: Surfaces) -> Option<String> {
        let may_look = caller.scopes.contains(Scopes::READ);
        may_look.then(|| surface::instructions(surfaces, &self.snapshot().view_of(caller))).flatten()
    }
}

fn read_cursor(page: ListPage, length: usize) -> Result<usize, Error> {
    let Some(cursor) = page.cursor else { return Ok(0) };
    cursor.parse().ok().filter(|start| *start < length).ok_or_else(|| {
        Error::new(ErrorKind::Validation, format!("`{cursor}` is not a valid cursor for this list."))
            .hint("Start again without a cursor; the list may have changed.")
    })
}

pub(crate) fn items(view: &View, surfaces: Surfaces, kind: ListKind, limits: &Limits) -> Vec<Raw> {
    match kind {
        ListKind::Tools => surface::tools(surfaces, view, limits),
        ListKind::Prompts => {
            let ready = view.prompts().iter().filter(|prompt| !view.modules()[prompt.module].needs_login);
            ready.map(|prompt| prompt.direct_definition(surfaces.name_length())).collect()
        }
        ListKind::Resources | ListKind::Templates | ListKind::Skills => {
            // Two modules may offer one URI; reads go to the first, so only that one is listed.
            let mut seen: HashSet<Arc<str>> = HashSet::new();
            let listings = view.ready_modules().filter_map(|module| module.listing.as_ref());
            let all = listings.flat_map(|listing| listing.of(kind));
            all.filter(|item| seen.insert(Arc::clone(&item.name))).map(|item| item.raw.clone()).collect()
        }
    }
}

//! The MCP list methods, in pages.

use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;

use super::Discovery;
use crate::surface::{self, Surface, Surfaces};
use crate::viewer::Viewer;

/// The requested page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    pub cursor: Option<String>,
}

impl Discovery {
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
            self.lookup.wait_for_client_listing(caller).await;
        }
        if kind == ListKind::Tools && surfaces.contains(Surface::Search) {
            // A client that sees the search tool will probably use it: load the index now.
            self.search.start_indexing();
        }
        let snapshot = self.catalogs.snapshot_for(viewer);
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
        self.catalogs.snapshot().list(caller, surfaces, ListKind::Tools, &self.limits)
    }

    /// Returns usage instructions for these surfaces, if the caller has the read scope.
    pub fn instructions(&self, caller: &Caller, surfaces: Surfaces) -> Option<String> {
        let may_look = caller.scopes.contains(Scopes::READ);
        may_look.then(|| surface::instructions(surfaces, &self.catalogs.snapshot().view_of(caller))).flatten()
    }
}

fn read_cursor(page: ListPage, length: usize) -> Result<usize, Error> {
    let Some(cursor) = page.cursor else { return Ok(0) };
    cursor.parse().ok().filter(|start| *start < length).ok_or_else(|| {
        Error::new(ErrorKind::Validation, format!("`{cursor}` is not a valid cursor for this list."))
            .hint("Start again without a cursor; the list may have changed.")
    })
}

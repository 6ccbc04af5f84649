//! Items of the MCP lists: tools as the client's surfaces show them, and the resources, templates and prompts of all
//! modules.

use std::collections::HashSet;
use std::sync::Arc;

use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::view::View;

use crate::surface::{self, Surfaces};

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

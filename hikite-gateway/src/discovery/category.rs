//! Descriptions of categories (`get-category-tools`).

use hikite_core::catalog::Module;
use hikite_core::category::Category;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::source::SourceState;
use hikite_core::view::View;

use super::Discovery;
use crate::surface;
use crate::viewer::Viewer;

impl Discovery {
    /// Describes the tools of a category, all or the named ones.
    pub(crate) async fn describe_category(
        &self,
        viewer: Viewer<'_>,
        name: &str,
        names: Option<&[String]>,
    ) -> Result<Raw, Error> {
        self.lookup.wait_for_category(viewer, name, self.limits.first_list, Category::has_listed_server).await;
        // A category with some tools available waits only briefly for the rest.
        self.lookup.wait_for_category(viewer, name, self.lookup.list_wait(), |_| false).await;
        let snapshot = self.catalogs.snapshot_for(viewer);
        let view = snapshot.view_of(viewer.caller);
        let category = view.category(name).map_err(|error| error.named("UnknownCategory"))?;
        surface::describe(category, names).map_err(|error| explain_missing(&view, category, error))
    }
}

/// Explains why a category is incomplete: a server with an unreadable list, one that is unreachable, or one that needs
/// a login.
fn explain_missing(view: &View, category: &Category, error: Error) -> Error {
    let missing: Vec<&Module> = category.missing.iter().filter_map(|missing| view.module(&missing.server)).collect();
    let unreadable = missing.iter().find_map(|module| match module.source.state() {
        SourceState::Failing { reason, answers: true, .. } => Some(reason),
        _ => None,
    });
    if let Some(reason) = unreadable {
        return Error { message: reason.into(), ..error }.named("SchemaFetchError");
    }
    if error.kind != ErrorKind::UpstreamUnavailable {
        return error;
    }
    let whys: Vec<Error> = missing.iter().map(|module| module.unlisted_error()).collect();
    let Some(first) = whys.first() else { return error };
    let told: Vec<&str> = whys.iter().map(|why| &*why.message).collect();
    let message = format!("{} {}", error.message, told.join(" "));
    // A single login may be all that is missing.
    let login = whys.iter().all(|why| why.kind == ErrorKind::AccountRequired);
    let hint = if login { first.hint.clone() } else { error.hint.clone() };
    let kind = if login { ErrorKind::AccountRequired } else { error.kind };
    Error { kind, message: message.into(), hint, ..error }
}

//! The server capabilities of hikite, as each protocol revision expects them.

use hikite_core::json::{Object, Raw};
use hikite_core::view::View;
use hikite_wire::revision::Revision;
use hikite_wire::stateless::TASKS;

/// Builds the capabilities for the response to `initialize`.
pub(crate) fn of_session(view: &View, revision: Revision) -> Object {
    let mut capabilities = common();
    if revision > Revision::V2024_11_05 {
        capabilities.set("completions", Raw::empty_object());
    }
    if revision >= Revision::V2025_11_25 && offers_tasks(view) {
        let call = Object::default().with("call", Raw::empty_object());
        let requests = Object::default().with("tools", call);
        let tasks = Object::default().with("cancel", Raw::empty_object()).with("requests", requests);
        capabilities.set("tasks", tasks);
    }
    let mut extensions = view.extensions();
    // Sessions use the task capability of the core protocol instead of the extension.
    extensions.remove(TASKS);
    with_extensions(capabilities, extensions)
}

/// Builds the capabilities for the response to `server/discover`.
pub(crate) fn stateless(view: &View) -> Object {
    let mut extensions = view.extensions();
    if offers_tasks(view) {
        extensions.set(TASKS, Raw::empty_object());
    }
    with_extensions(common().with("completions", Raw::empty_object()), extensions)
}

fn common() -> Object {
    let changing = || Object::default().with("listChanged", Raw::of(&true));
    Object::default()
        .with("tools", changing())
        .with("resources", changing().with("subscribe", Raw::of(&true)))
        .with("prompts", changing())
        .with("logging", Raw::empty_object())
}

fn with_extensions(capabilities: Object, extensions: Object) -> Object {
    if extensions.is_empty() { capabilities } else { capabilities.with("extensions", extensions) }
}

/// Returns `true` if any module supports tasks, in either form.
fn offers_tasks(view: &View) -> bool {
    let listings = view.modules().iter().filter_map(|module| module.listing.as_ref());
    let mut capabilities = listings.map(|listing| &listing.capabilities);
    capabilities.any(|capabilities| {
        let of_session = || {
            let requests = capabilities.get("tasks")?.object()?.get("requests")?.object()?;
            requests.get("tools")?.object()?.get("call").cloned()
        };
        let extension = || capabilities.get("extensions")?.object()?.get(TASKS).cloned();
        of_session().or_else(extension).is_some()
    })
}

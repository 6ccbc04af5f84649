//! Module descriptions on demand (`get_module_schema`), with what each conversation has received already. Also
//! exposes prompts and resources of modules as tool results.

mod prompt;
mod sent;
mod sheet;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hikite_core::catalog::{Module, Tool};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use hikite_core::view;

use crate::command::Opening;
use crate::conversation::conversation;
use crate::gateway::Gateway;
use crate::snapshot::Snapshot;
use sent::Asked;
pub(crate) use sent::Sent;
pub(crate) use sheet::Sheet;

/// One element of the result array, with its error if it failed.
struct Element {
    raw: Raw,
    failed: Option<Error>,
}

impl Gateway {
    /// Runs `get_module_schema`: returns an array with an element for each named module.
    pub(crate) async fn open(&self, mut opening: Opening, context: CallContext) -> Result<Raw, Error> {
        let caller = &context.session.caller;
        let conversation = conversation(&mut opening.params, &context);
        opening.modules = each_once(opening.modules);
        opening.tools = each_once(opening.tools);
        self.wait_for_modules(caller, &opening.modules).await;
        let snapshot = self.snapshot_for(&*context.session);
        let view = snapshot.view_of(caller);
        let tools: Arc<[String]> = opening.tools.as_slice().into();
        let mut unknown = opening.tools.clone();
        let mut elements: Vec<Element> = Vec::new();
        for name in &opening.modules {
            let module = match view.open_module(name) {
                Ok(module) => module,
                Err(error) => {
                    elements.push(failed("module", name, error));
                    continue;
                }
            };
            unknown.retain(|name| !sheet::enabled(module).any(|tool| is_called(tool, name)));
            let Some(sheet) = self.sheet(&snapshot, module, &opening, &context) else { continue };
            let asked =
                Asked { module: Arc::clone(&module.name), detail: opening.detail, tools: Arc::clone(&tools) };
            let has_it = opening.known.iter().any(|known| **known == *sheet.hash)
                || conversation.as_ref().is_some_and(|who| self.sent.holds(who, &asked, &sheet.hash));
            if has_it && !opening.refresh {
                elements.push(Element { raw: sheet.reference(module), failed: None });
                continue;
            }
            if let Some(conversation) = &conversation {
                self.sent.note(conversation, asked, &sheet.hash);
            }
            elements.push(Element { raw: sheet.raw.clone(), failed: None });
        }
        let opened = opening.modules.iter().filter_map(|name| view.open_module(name).ok());
        let known: Vec<&str> = opened.flat_map(sheet::enabled).map(|tool| &*tool.name).collect();
        if elements.iter().all(|element| element.failed.is_none()) {
            let told = |name: &String| failed("tool", name, view::unknown_tool(name, known.iter().copied()));
            elements.extend(unknown.iter().map(told));
        }
        answer(elements)
    }

    /// Returns a module's description; `None` if it has none of the requested tools.
    fn sheet(
        &self,
        snapshot: &Snapshot,
        module: &Module,
        opening: &Opening,
        context: &CallContext,
    ) -> Option<Arc<Sheet>> {
        if opening.tools.is_empty() {
            return Some(snapshot.sheet(&context.session.caller, module, opening.detail, &self.limits));
        }
        let is_wanted = |tool: &&Tool| opening.tools.iter().any(|name| is_called(tool, name));
        let mut wanted = sheet::enabled(module).filter(is_wanted).peekable();
        wanted.peek()?;
        Some(Arc::new(Sheet::of_tools(module, opening.detail, wanted)))
    }
}

/// Returns `true` if `name` is the tool's displayed name, its source's name or its key.
fn is_called(tool: &Tool, name: &str) -> bool {
    let key = || name.strip_prefix(&*tool.key.module)?.strip_prefix(':').map(|own| *own == *tool.key.tool);
    *tool.name == *name || *tool.key.tool == *name || key() == Some(true)
}

fn each_once(names: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

fn failed(what: &str, name: &str, error: Error) -> Element {
    let raw = Object::default().with(what, name).with("error", error.detail()).raw();
    Element { raw, failed: Some(error) }
}

/// Builds the result with the array as text. Fails if the only element failed; if several all failed, sets `isError`.
fn answer(mut elements: Vec<Element>) -> Result<Raw, Error> {
    let all_failed = elements.iter().all(|element| element.failed.is_some());
    if let [Element { failed, .. }] = elements.as_mut_slice()
        && let Some(error) = failed.take()
    {
        return Err(error);
    }
    let text = Raw::array(elements.iter().map(|element| &element.raw));
    let block = Object::default().with("type", "text").with("text", &*text.as_str()).raw();
    let mut result = Object::default().with("content", Raw::array([&block]));
    if all_failed {
        result.set("isError", Raw::of(&true));
    }
    Ok(result.raw())
}

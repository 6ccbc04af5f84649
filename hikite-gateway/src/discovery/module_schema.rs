//! Module descriptions on demand (`get_module_schema`), without what the conversation has received already.

use std::sync::Arc;

use hikite_core::catalog::{Module, Tool};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use hikite_core::view;

use super::Discovery;
use crate::command::ModuleQuery;
use crate::conversation::conversation;
use crate::describe::{DescriptionRequest, ModuleDescription, enabled};
use crate::snapshot::Snapshot;

/// One element of the result array, with its error if it failed.
struct DescriptionElement {
    raw: Raw,
    failed: Option<Error>,
}

impl Discovery {
    /// Runs `get_module_schema`: returns an array with an element for each named module.
    pub(crate) async fn open(&self, mut opening: ModuleQuery, context: CallContext) -> Result<Raw, Error> {
        let caller = &context.session.caller;
        let conversation = conversation(&mut opening.params, &context);
        opening.modules = deduplicated(opening.modules);
        opening.tools = deduplicated(opening.tools);
        self.lookup.wait_for_modules(caller, &opening.modules).await;
        let snapshot = self.catalogs.snapshot_for(&*context.session);
        let view = snapshot.view_of(caller);
        let tools: Arc<[String]> = opening.tools.as_slice().into();
        let mut unknown = opening.tools.clone();
        let mut elements: Vec<DescriptionElement> = Vec::new();
        for name in &opening.modules {
            let module = match view.listed_module(name) {
                Ok(module) => module,
                Err(error) => {
                    elements.push(failed("module", name, error));
                    continue;
                }
            };
            unknown.retain(|name| !enabled(module).any(|tool| has_name(tool, name)));
            let Some(sheet) = self.sheet(&snapshot, module, &opening, &context) else { continue };
            let request = DescriptionRequest {
                module: Arc::clone(&module.name),
                detail: opening.detail,
                tools: Arc::clone(&tools),
            };
            let has_it = opening.known.iter().any(|known| **known == *sheet.hash)
                || conversation.as_ref().is_some_and(|who| self.sent.holds(who, &request, &sheet.hash));
            if has_it && !opening.refresh {
                elements.push(DescriptionElement { raw: sheet.reference(module), failed: None });
                continue;
            }
            if let Some(conversation) = &conversation {
                self.sent.note(conversation, request, &sheet.hash);
            }
            elements.push(DescriptionElement { raw: sheet.raw.clone(), failed: None });
        }
        let opened = opening.modules.iter().filter_map(|name| view.listed_module(name).ok());
        let known: Vec<&str> = opened.flat_map(enabled).map(|tool| &*tool.name).collect();
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
        opening: &ModuleQuery,
        context: &CallContext,
    ) -> Option<Arc<ModuleDescription>> {
        if opening.tools.is_empty() {
            return Some(snapshot.description(&context.session.caller, module, opening.detail, &self.limits));
        }
        let is_wanted = |tool: &&Tool| opening.tools.iter().any(|name| has_name(tool, name));
        let mut wanted = enabled(module).filter(is_wanted).peekable();
        wanted.peek()?;
        Some(Arc::new(ModuleDescription::of_tools(module, opening.detail, wanted)))
    }
}

/// Returns `true` if `name` is the tool's displayed name, its source's name or its key.
fn has_name(tool: &Tool, name: &str) -> bool {
    let key = || name.strip_prefix(&*tool.key.module)?.strip_prefix(':').map(|own| *own == *tool.key.tool);
    *tool.name == *name || *tool.key.tool == *name || key() == Some(true)
}

fn deduplicated(names: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

fn failed(what: &str, name: &str, error: Error) -> DescriptionElement {
    let raw = Object::default().with(what, name).with("error", error.detail()).raw();
    DescriptionElement { raw, failed: Some(error) }
}

/// Builds the result with the array as text. Fails if the only element failed; if several all failed, sets `isError`.
fn answer(mut elements: Vec<DescriptionElement>) -> Result<Raw, Error> {
    let all_failed = elements.iter().all(|element| element.failed.is_some());
    if let [DescriptionElement { failed, .. }] = elements.as_mut_slice()
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

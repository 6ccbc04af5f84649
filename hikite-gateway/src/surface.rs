//! Surfaces: the fixed sets of tools that clients are shown. Each surface only translates names and JSON to commands
//! and outcomes back; `dispatch` decides what may run.

mod argument;
mod categories;
mod direct;
mod menu;
mod modules;
mod search;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
pub use hikite_core::surface::{Surface, Surfaces};
use hikite_core::view::View;
use serde_json::{Value, json};

use crate::call_result::CallResult;
use crate::command::Command;

/// Form in which a command's failure reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureForm {
    /// A tool result that a model can read, with the error names of the surface's specification.
    InResult(Surface),
    /// A JSON-RPC error.
    AsError,
}

/// Translation function of a surface; returns `None` if the name is not one of its tools.
type Translator = fn(&str, &Object) -> Option<Result<Command, Error>>;

/// A `tools/call` that could not be translated: the error and the params.
#[derive(Debug)]
pub(crate) struct TranslationError {
    pub(crate) error: Error,
    pub(crate) failure: FailureForm,
    pub(crate) params: Object,
}

/// Returns the tools of `tools/list`.
pub(crate) fn tools(surfaces: Surfaces, view: &View, limits: &Limits) -> Vec<Raw> {
    let mut tools = Vec::new();
    if surfaces.contains(Surface::Categories) {
        tools.extend(categories::tools(view));
    }
    let finder = surfaces.contains(Surface::Search).then_some(search::DISCOVER);
    if surfaces.contains(Surface::Modules) {
        tools.extend(modules::tools(view, limits, finder));
    }
    if surfaces.contains(Surface::Search) {
        // The `modules` surface already has the module list and a tool that runs others.
        let beside = surfaces.contains(Surface::Modules);
        tools.extend(if beside { search::tools_with_modules() } else { search::tools(view, limits) });
    }
    if surfaces.contains(Surface::Direct) {
        tools.extend(direct::tools(view, surfaces.name_length()));
    }
    tools
}

/// Returns usage instructions for the model.
pub(crate) fn instructions(surfaces: Surfaces, view: &View) -> Option<String> {
    if surfaces.contains(Surface::Categories) {
        return Some(categories::INSTRUCTIONS.into());
    }
    if surfaces.contains(Surface::Modules) && surfaces.contains(Surface::Search) {
        return Some(format!("{} {}", modules::INSTRUCTIONS, search::INSTRUCTIONS_WITH_MODULES));
    }
    if surfaces.contains(Surface::Modules) {
        return Some(modules::INSTRUCTIONS.into());
    }
    if surfaces.contains(Surface::Search) {
        return Some(search::INSTRUCTIONS.into());
    }
    direct::instructions(view)
}

/// Translates a `tools/call`: a meta tool of one of the surfaces, else the tool of that name.
pub(crate) fn translate(surfaces: Surfaces, params: Object) -> Result<(Command, FailureForm), TranslationError> {
    let Some(name) = params.text("name") else {
        let error = Error::new(ErrorKind::Validation, "`name` must be the name of a tool.");
        return Err(TranslationError { error, failure: FailureForm::AsError, params });
    };
    let meta: [(Surface, Translator); 3] = [
        (Surface::Categories, categories::translate),
        (Surface::Modules, modules::translate),
        (Surface::Search, search::translate),
    ];
    for (surface, translate) in meta.into_iter().filter(|(surface, _)| surfaces.contains(*surface)) {
        let failure = FailureForm::InResult(surface);
        match translate(&name, &params) {
            None => {}
            Some(Ok(command)) => return Ok((command, failure)),
            Some(Err(error)) => return Err(TranslationError { error, failure, params }),
        }
    }
    Ok((direct::translate(name, params), FailureForm::InResult(Surface::Direct)))
}

impl FailureForm {
    /// Returns the name of the surface that was called.
    pub(crate) fn surface(self) -> &'static str {
        match self {
            Self::InResult(surface) => surface.name(),
            Self::AsError => "",
        }
    }

    /// Returns the response to a failed `tools/call`: a result, or the error itself.
    pub(crate) fn render(self, error: Error) -> Result<CallResult, Error> {
        let insufficient_scope = error.insufficient_scope;
        let raw = match self {
            Self::InResult(Surface::Categories) => error_result(&error),
            Self::InResult(Surface::Modules) => error_result(&modules::with_hint(error)),
            Self::InResult(Surface::Search) => error_result(&search::with_hint(error)),
            // Upstream protocol errors and unknown names stay protocol errors.
            Self::InResult(Surface::Direct) if error.relayed.is_none() && error.kind != ErrorKind::ToolNotFound => {
                error_result(&error)
            }
            Self::InResult(Surface::Direct) | Self::AsError => return Err(error),
        };
        Ok(CallResult { raw, insufficient_scope })
    }
}

/// Builds an error result, as text for models and structured for programs.
fn error_result(error: &Error) -> Raw {
    let name = error.name.unwrap_or(error.code());
    let mut text = format!("{name}: {}", error.message);
    if let Some(hint) = &error.hint {
        text = format!("{text}\nhint: {hint}");
    }
    if let Some(schema) = &error.schema {
        text = format!("{text}\nschema: {}", schema.as_str());
    }
    let block = Object::default().with("type", "text").with("text", text.as_str()).raw();
    Object::default()
        .with("content", Raw::array([&block]))
        .with("structuredContent", Object::default().with("error", error.detail()))
        .with("isError", Raw::of(&true))
        .raw()
}

/// Builds a result with a JSON document, as text and structured.
pub(crate) fn document(body: &Object) -> Raw {
    let body = body.raw();
    let block = Object::default().with("type", "text").with("text", &*body.as_str()).raw();
    Object::default().with("content", Raw::array([&block])).with("structuredContent", body).raw()
}

/// Returns the annotations of a read-only meta tool.
fn read_only_annotations() -> Value {
    json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false })
}

/// Returns the annotations of a meta tool that executes arbitrary other tools.
fn executing_annotations() -> Value {
    json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true })
}

/// Reads the arguments of a meta tool: an object, or a string with one, as some models send it.
pub(crate) fn arguments(raw: Option<&Raw>) -> Result<Object, Error> {
    let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Ok(Object::default()) };
    let unwrapped = raw.text().and_then(|text| Raw::parse(text).ok());
    unwrapped.as_ref().unwrap_or(raw).object().ok_or_else(|| {
        Error::new(ErrorKind::Validation, "The arguments must be a JSON object.").hint("Send `{}` if there are none.")
    })
}

pub(crate) use categories::describe;
pub(crate) use search::{execution_result, found};

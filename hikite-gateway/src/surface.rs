//! The fixed set of tools one client is shown. Each surface is a translator: names and JSON to commands, and
//! outcomes back. What may be done is decided in `dispatch`.

mod categories;
mod direct;
mod form;
mod menu;
mod modules;
mod rest;
mod search;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::name::NameLength;
use hikite_core::view::View;
use serde_json::{Value, json};

use crate::command::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    Categories,
    Direct,
    Modules,
    Search,
}

impl Surface {
    pub const ALL: [Self; 4] = [Self::Categories, Self::Direct, Self::Modules, Self::Search];

    pub fn name(self) -> &'static str {
        match self {
            Self::Categories => "categories",
            Self::Direct => "direct",
            Self::Modules => "modules",
            Self::Search => "search",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.name() == name)
    }
}

/// The surfaces of one client, at least one, and how long the names on them may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Surfaces {
    bits: u8,
    short_names: bool,
}

/// How a failure of the command is shown to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// As a tool result that a model can read, with the names of the surface's specification.
    InResult(Surface),
    /// As a JSON-RPC error.
    AsError,
}

/// How a surface reads a call: `None` if the name is not one of its tools.
type Translate = fn(&str, &Object) -> Option<Result<Command, Error>>;

/// A `tools/call` that means nothing: its params, and what is wrong with them.
#[derive(Debug)]
pub(crate) struct Misread {
    pub(crate) error: Error,
    pub(crate) failure: Failure,
    pub(crate) params: Object,
}

impl Surfaces {
    pub fn of(surfaces: impl IntoIterator<Item = Surface>) -> Self {
        let bits = surfaces.into_iter().fold(0, |bits, surface| bits | 1 << surface as u8);
        Self { bits, short_names: false }
    }

    /// The same for a client that takes no names of more than 64 characters, or for one that takes all.
    #[must_use]
    pub fn with_short_names(self, short_names: bool) -> Self {
        Self { short_names, ..self }
    }

    pub fn contains(self, surface: Surface) -> bool {
        self.bits & 1 << surface as u8 != 0
    }

    /// Whether `other` has them all.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.bits & !other.bits == 0
    }

    pub(crate) fn name_length(self) -> NameLength {
        if self.short_names { NameLength::Short } else { NameLength::Whole }
    }

    pub fn names(self) -> Vec<&'static str> {
        Surface::ALL.into_iter().filter(|surface| self.contains(*surface)).map(Surface::name).collect()
    }

    pub fn shows_real_tools(self) -> bool {
        self.contains(Surface::Direct)
    }

    /// Whether what is shown depends on what the servers offer.
    pub(crate) fn needs_lists(self) -> bool {
        self.shows_real_tools() || self.contains(Surface::Modules) || self.contains(Surface::Search)
    }

    /// What `tools/list` shows.
    pub(crate) fn tools(self, view: &View, limits: &Limits) -> Vec<Raw> {
        let mut tools = Vec::new();
        if self.contains(Surface::Categories) {
            tools.extend(categories::tools(view));
        }
        let finder = self.contains(Surface::Search).then_some(search::DISCOVER);
        if self.contains(Surface::Modules) {
            tools.extend(modules::tools(view, limits, finder));
        }
        if self.contains(Surface::Search) {
            // The list of modules stands once, and one tool that runs others is enough.
            let beside = self.contains(Surface::Modules);
            tools.extend(if beside { search::tools_beside_modules() } else { search::tools(view, limits) });
        }
        if self.contains(Surface::Direct) {
            tools.extend(direct::tools(view, self.name_length()));
        }
        tools
    }

    /// How to use these tools, in a few words for the model.
    pub fn instructions(self, view: &View) -> Option<String> {
        if self.contains(Surface::Categories) {
            return Some(categories::INSTRUCTIONS.into());
        }
        if self.contains(Surface::Modules) && self.contains(Surface::Search) {
            return Some(format!("{} {}", modules::INSTRUCTIONS, search::BESIDE));
        }
        if self.contains(Surface::Modules) {
            return Some(modules::INSTRUCTIONS.into());
        }
        if self.contains(Surface::Search) {
            return Some(search::INSTRUCTIONS.into());
        }
        direct::instructions(view)
    }

    /// What a `tools/call` means: a meta tool of one of the surfaces, else the tool of that name.
    pub(crate) fn translate(self, params: Object) -> Result<(Command, Failure), Misread> {
        let Some(name) = params.text("name") else {
            let error = Error::new(Kind::Validation, "`name` must be the name of a tool");
            return Err(Misread { error, failure: Failure::AsError, params });
        };
        let meta: [(Surface, Translate); 3] = [
            (Surface::Categories, categories::translate),
            (Surface::Modules, modules::translate),
            (Surface::Search, search::translate),
        ];
        for (surface, translate) in meta.into_iter().filter(|(surface, _)| self.contains(*surface)) {
            let failure = Failure::InResult(surface);
            match translate(&name, &params) {
                None => {}
                Some(Ok(command)) => return Ok((command, failure)),
                Some(Err(error)) => return Err(Misread { error, failure, params }),
            }
        }
        Ok((direct::translate(name, params), Failure::InResult(Surface::Direct)))
    }
}

impl Failure {
    /// The name of the surface that was spoken to.
    pub(crate) fn surface(self) -> &'static str {
        match self {
            Self::InResult(surface) => surface.name(),
            Self::AsError => "",
        }
    }

    /// The answer for a failed `tools/call`: a result, or the error itself.
    pub(crate) fn render(self, error: Error) -> Result<Raw, Error> {
        match self {
            Self::InResult(Surface::Categories) => Ok(in_result(&error)),
            Self::InResult(Surface::Modules) => Ok(in_result(&modules::hinted(error))),
            Self::InResult(Surface::Search) => Ok(in_result(&search::hinted(error))),
            // What the upstream itself refused, and names that do not exist, are errors of the protocol.
            Self::InResult(Surface::Direct)
                if error.relayed.is_none() && error.kind != Kind::ToolNotFound =>
            {
                Ok(in_result(&error))
            }
            Self::InResult(Surface::Direct) | Self::AsError => Err(error),
        }
    }
}

/// A result that says what went wrong, for models (text) and programs (structured).
fn in_result(error: &Error) -> Raw {
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

/// A result that carries a JSON document, as text and structured.
pub(crate) fn document(body: &Object) -> Raw {
    let body = body.raw();
    let block = Object::default().with("type", "text").with("text", &*body.as_str()).raw();
    Object::default().with("content", Raw::array([&block])).with("structuredContent", body).raw()
}

/// What a meta tool is that shows.
fn looking() -> Value {
    json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false })
}

/// What a meta tool is that runs others: whatever these may be.
fn acting() -> Value {
    json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true })
}

/// Arguments of a meta tool: an object, or a string that holds one, as some models send it.
pub(crate) fn arguments(raw: Option<&Raw>) -> Result<Object, Error> {
    let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Ok(Object::default()) };
    let unwrapped = raw.text().and_then(|text| Raw::parse(text).ok());
    unwrapped.as_ref().unwrap_or(raw).object().ok_or_else(|| {
        Error::new(Kind::Validation, "the arguments must be a JSON object").hint("send `{}` for none")
    })
}

pub(crate) use categories::describe;
pub use rest::{Found, ToolFilter};
pub(crate) use search::{executed, found};

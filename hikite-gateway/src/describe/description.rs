//! Description of a module for `get_module_schema`: `{module, description, api_version, state, tools, resources,
//! prompts, hash}`. Nothing is dropped silently: one that is too long is sent in less detail, with a note on how to
//! get the rest.

use hikite_core::catalog::{Module, Tool, schema_of};
use hikite_core::hex::hex;
use hikite_core::json::{Object, Raw};
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::signature::{SignatureStyle, brief, signature};
use sha2::{Digest, Sha256};

use crate::command::Detail;

/// Maximum length of the comment after a tool's signature, and of a resource's description.
const TOOL_CHARS: usize = 120;
const RESOURCE_CHARS: usize = 80;
/// Maximum length of a server's instructions.
const INSTRUCTION_CHARS: usize = 1200;
/// Maximum number of resources listed at the lowest level of detail.
const RESOURCES: usize = 100;
/// Bytes of the digest that the hash shows.
const HASH_BYTES: usize = 6;

#[derive(Debug)]
pub(crate) struct ModuleDescription {
    pub(crate) raw: Raw,
    pub(crate) hash: Box<str>,
}

/// Level of detail of each item.
#[derive(Clone, Copy)]
enum Depth {
    Names,
    /// Signatures without parameter descriptions.
    Plain,
    Signatures,
    Schemas,
}

impl ModuleDescription {
    /// Returns the approximate memory use.
    pub(crate) fn bytes(&self) -> usize {
        self.raw.bytes().len() + self.hash.len()
    }

    /// Describes the whole module in as much detail as `budget` bytes allow.
    pub(crate) fn within(module: &Module, detail: Detail, budget: usize) -> Self {
        use Depth::{Names, Plain, Schemas, Signatures};
        let depths: &[Depth] = match detail {
            Detail::Names => &[Names],
            Detail::Signatures => &[Signatures, Plain, Names],
            Detail::Schemas => &[Schemas, Signatures, Plain, Names],
        };
        let whole = |depth: Depth| {
            let mut description = head(module, depth).with("tools", tools(enabled(module), depth));
            let listing = module.listing.as_deref();
            description.set("resources", listing.map_or_else(|| Raw::array([]), |listing| resources(listing, depth)));
            description.set("prompts", listing.map_or_else(|| Raw::array([]), |listing| prompts(listing, depth)));
            description
        };
        let mut description = Object::default();
        for (at, depth) in depths.iter().enumerate() {
            description = whole(*depth);
            if at > 0 {
                description.set("note", note(*depth));
            }
            if description.raw().bytes().len() <= budget {
                break;
            }
        }
        Self::with_hash(description, detail)
    }

    /// Describes the named tools only.
    pub(super) fn of_tools<'a>(module: &Module, detail: Detail, named: impl Iterator<Item = &'a Tool>) -> Self {
        let depth = match detail {
            Detail::Names => Depth::Names,
            Detail::Signatures => Depth::Signatures,
            Detail::Schemas => Depth::Schemas,
        };
        Self::with_hash(Object::default().with("module", &*module.name).with("tools", tools(named, depth)), detail)
    }

    /// Adds the hash, which covers the content and the requested level of detail.
    fn with_hash(description: Object, detail: Detail) -> Self {
        let word = Detail::ALL.iter().find(|(_, other)| *other == detail).map_or("", |(word, _)| word);
        let mut digest = Sha256::new();
        digest.update(word);
        digest.update([0]);
        digest.update(description.raw().bytes());
        let hash = hex(&digest.finalize()[..HASH_BYTES]);
        Self { raw: description.with("hash", hash.as_str()).raw(), hash: hash.into() }
    }

    /// Returns the placeholder for a description that the conversation has already.
    pub(super) fn reference(&self, module: &Module) -> Raw {
        Object::default()
            .with("module", &*module.name)
            .with("hash", &*self.hash)
            .with("unchanged", Raw::of(&true))
            .with("hint", "already sent; `refresh: true` sends it again")
            .raw()
    }
}

pub(super) fn enabled(module: &Module) -> impl Iterator<Item = &Tool> {
    module.tools.iter().filter(|tool| tool.is_enabled())
}

fn head(module: &Module, depth: Depth) -> Object {
    let mut head = Object::default().with("module", &*module.name).with("description", module.description.as_str());
    if let Some(version) = version(module) {
        head.set("api_version", version);
    }
    if module.needs_login {
        head.set("state", module.source.state().word());
    }
    let instructions = module.listing.as_ref().and_then(|listing| listing.instructions.as_deref());
    if let Some(text) = instructions.filter(|text| !text.trim().is_empty() && !matches!(depth, Depth::Names)) {
        head.set("instructions", brief(text, INSTRUCTION_CHARS));
    }
    head
}

/// Returns the server's version, or the version that all registered tools share.
fn version(module: &Module) -> Option<String> {
    if let Some(version) = module.version() {
        return Some(version);
    }
    let mut versions = enabled(module).map(|tool| tool.about.version.as_deref());
    let first = versions.next()??;
    versions.all(|version| version == Some(first)).then(|| first.to_owned())
}

fn tools<'a>(tools: impl Iterator<Item = &'a Tool>, depth: Depth) -> Raw {
    let style = |doc_chars| SignatureStyle { doc_chars, ..SignatureStyle::default() };
    let tool = |tool: &Tool| match depth {
        Depth::Names => Raw::from(&*tool.name),
        Depth::Plain => Raw::from(line(tool, style(0))),
        Depth::Signatures => Raw::from(line(tool, SignatureStyle::default())),
        Depth::Schemas => tool.definition.clone(),
    };
    Raw::array(&tools.map(tool).collect::<Vec<Raw>>())
}

/// Formats a tool as `name(a: string, b?: "x" | "y") // What it does.`
fn line(tool: &Tool, style: SignatureStyle) -> String {
    let line = signature(&tool.name, schema_of(&tool.definition).as_ref(), style);
    with_comment(line, tool.definition.object().as_ref(), TOOL_CHARS)
}

fn with_comment(line: String, definition: Option<&Object>, chars: usize) -> String {
    let told = definition.and_then(|definition| definition.text("description").or_else(|| definition.text("title")));
    match told.map(|text| brief(&text, chars)).filter(|text| !text.is_empty()) {
        Some(text) => format!("{line} // {text}"),
        None => line,
    }
}

fn resources(listing: &Listing, depth: Depth) -> Raw {
    let resource = |kind: ListKind, item: &ListItem| match depth {
        Depth::Names => Raw::from(&*item.name),
        Depth::Schemas => item.raw.clone(),
        Depth::Plain | Depth::Signatures => {
            let members = item.raw.object().unwrap_or_default();
            let mut short = Object::default().with(kind.name_member(), &*item.name);
            if let Some(name) = members.get("name") {
                short.set("name", name.clone());
            }
            if let Some(text) = members.text("description") {
                short.set("description", brief(&text, RESOURCE_CHARS));
            }
            short.raw()
        }
    };
    let all = [ListKind::Resources, ListKind::Templates].into_iter();
    let all = all.flat_map(|kind| listing.of(kind).iter().map(move |item| (kind, item)));
    let count = all.clone().count();
    let most = if matches!(depth, Depth::Names) { RESOURCES } else { usize::MAX };
    let mut shown: Vec<Raw> = all.take(most).map(|(kind, item)| resource(kind, item)).collect();
    if count > shown.len() {
        shown.push(Raw::from(format!("and {} more", count - shown.len())));
    }
    Raw::array(&shown)
}

/// Formats each prompt as `name(a, b?) // What it is for.`
fn prompts(listing: &Listing, depth: Depth) -> Raw {
    let argument = |argument: &Raw| {
        let argument = argument.object().unwrap_or_default();
        let required = argument.get("required").is_some_and(|raw| raw.decode().unwrap_or(false));
        format!("{}{}", argument.text("name").unwrap_or_default(), if required { "" } else { "?" })
    };
    let prompt = |item: &ListItem| match depth {
        Depth::Names => Raw::from(&*item.name),
        Depth::Schemas => item.raw.clone(),
        Depth::Plain | Depth::Signatures => {
            let members = item.raw.object().unwrap_or_default();
            let arguments = members.get("arguments").and_then(Raw::items).unwrap_or_default();
            let arguments: Vec<String> = arguments.iter().map(argument).collect();
            let line = format!("{}({})", item.name, arguments.join(", "));
            Raw::from(with_comment(line, Some(&members), TOOL_CHARS))
        }
    };
    Raw::array(&listing.prompts.iter().map(prompt).collect::<Vec<Raw>>())
}

/// Returns the note on how to get the omitted details.
fn note(depth: Depth) -> &'static str {
    match depth {
        Depth::Names => "too long, so only names are listed; `tools: [names]` beside `modules` shows those in full",
        Depth::Plain => {
            "too long, so parameter descriptions are left out; `tools: [names]` beside `modules` shows them"
        }
        Depth::Signatures | Depth::Schemas => {
            "too long, so only signatures are listed; `tools: [names]` beside `modules` sends their schemas"
        }
    }
}

//! The lists of one source as it sent them, and the cache that persists them.

use std::sync::Arc;

use crate::json::{Object, Raw};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
    Skills,
}

/// MCP extension that declares skills.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

impl ListKind {
    pub const ALL: [Self; 5] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts, Self::Skills];

    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
            Self::Skills => "skills/list",
        }
    }

    /// Returns the member of the list result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
            Self::Skills => "skills",
        }
    }

    /// Returns the noun for one item of this list.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Resources => "resource",
            Self::Templates => "template",
            Self::Prompts => "prompt",
            Self::Skills => "skill",
        }
    }

    /// Returns the member that identifies an item.
    pub fn name_member(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources | Self::Skills => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// Returns `true` if a server with these capabilities declares this list.
    pub fn is_declared(self, capabilities: &Object) -> bool {
        match self {
            Self::Tools => capabilities.get("tools").is_some(),
            Self::Resources | Self::Templates => capabilities.get("resources").is_some(),
            Self::Prompts => capabilities.get("prompts").is_some(),
            Self::Skills => capabilities
                .get("extensions")
                .and_then(Raw::object)
                .is_some_and(|extensions| extensions.get(SKILLS).is_some()),
        }
    }
}

/// One tool, resource, template, prompt or skill as the source sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    pub name: Arc<str>,
    pub raw: Raw,
}

impl ListItem {
    /// Reads an item; `None` if it has no name, since it could not be called.
    pub fn read(kind: ListKind, raw: Raw) -> Option<Self> {
        let name = raw.object()?.text(kind.name_member())?;
        (!name.is_empty()).then(|| Self { name: name.into(), raw })
    }
}

/// An item from which hidden characters were removed (see `sanitize`).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SanitizedItem {
    /// `tool`, `prompt`, …, or the nameless `server`, `capabilities` and `instructions`.
    pub kind: String,
    pub name: String,
    pub removed: usize,
    /// `true` if the item was dropped because its name contained hidden characters.
    pub left_out: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub tools: Vec<ListItem>,
    pub resources: Vec<ListItem>,
    pub templates: Vec<ListItem>,
    pub prompts: Vec<ListItem>,
    pub skills: Vec<ListItem>,
    /// `serverInfo`: the server's name, title and version.
    pub info: Object,
    pub instructions: Option<String>,
    pub capabilities: Object,
    /// Time at which the lists were read, in seconds since the Unix epoch.
    pub fetched_at: u64,
    /// Protocol revision last negotiated with the server.
    pub revision: Option<String>,
    /// Time for which the server declares its lists fresh.
    pub ttl_ms: Option<u64>,
    /// `true` if the server has sent requests to its client, or offers more to clients that accept them.
    pub sends_requests: bool,
    /// Items from which hidden characters were removed.
    pub sanitized: Vec<SanitizedItem>,
}

impl Listing {
    pub fn of(&self, kind: ListKind) -> &[ListItem] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Prompts => &self.prompts,
            ListKind::Skills => &self.skills,
        }
    }

    pub fn of_mut(&mut self, kind: ListKind) -> &mut Vec<ListItem> {
        match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Resources => &mut self.resources,
            ListKind::Templates => &mut self.templates,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Skills => &mut self.skills,
        }
    }

    /// Returns `true` if both offer the same items, regardless of when they were read.
    pub fn has_same_items(&self, other: &Self) -> bool {
        ListKind::ALL.into_iter().all(|kind| self.of(kind) == other.of(kind))
            && self.info == other.info
            && self.instructions == other.instructions
            && self.capabilities == other.capabilities
    }

    /// Returns `true` if this listing has an item name that `other` lacks.
    pub fn has_items_missing_in(&self, other: &Self) -> bool {
        ListKind::ALL.into_iter().any(|kind| self.of(kind).iter().any(|item| !other.names(kind, item)))
    }

    /// Adds the items that only `other` has.
    #[must_use]
    pub fn with_items_missing_from(mut self, other: &Self) -> Self {
        for kind in ListKind::ALL {
            let more: Vec<ListItem> = other.of(kind).iter().filter(|item| !self.names(kind, item)).cloned().collect();
            self.of_mut(kind).extend(more);
        }
        self
    }

    fn names(&self, kind: ListKind, item: &ListItem) -> bool {
        self.of(kind).iter().any(|own| own.name == item.name)
    }

    pub fn version(&self) -> Option<String> {
        self.info.text("version")
    }

    /// Serializes to one JSON object for `from_raw`; every item keeps its bytes.
    pub fn raw(&self) -> Raw {
        let mut out = Object::default()
            .with("format", Raw::of(&FORMAT))
            .with("fetchedAt", Raw::of(&self.fetched_at))
            .with("asksBack", Raw::of(&self.sends_requests))
            .with("revision", Raw::of(&self.revision))
            .with("ttlMs", Raw::of(&self.ttl_ms))
            .with("cleaned", Raw::of(&self.sanitized))
            .with("serverInfo", self.info.raw())
            .with("instructions", Raw::of(&self.instructions))
            .with("capabilities", self.capabilities.raw());
        for kind in ListKind::ALL {
            out.set(kind.member(), Raw::array(self.of(kind).iter().map(|item| &item.raw)));
        }
        out.raw()
    }

    pub fn from_raw(raw: &Raw) -> Option<Self> {
        let members = raw.object()?;
        let format: u32 = members.get("format")?.decode().ok()?;
        if format != FORMAT {
            return None;
        }
        let mut listing = Self {
            info: members.get("serverInfo")?.object()?,
            instructions: members.get("instructions")?.decode().ok()?,
            capabilities: members.get("capabilities")?.object()?,
            fetched_at: members.get("fetchedAt")?.decode().ok()?,
            sends_requests: members.get("asksBack")?.decode().ok()?,
            revision: members.get("revision")?.decode().ok()?,
            ttl_ms: members.get("ttlMs")?.decode().ok()?,
            sanitized: members.get("cleaned")?.decode().ok()?,
            ..Self::default()
        };
        for kind in ListKind::ALL {
            let items = members.get(kind.member())?.items()?;
            *listing.of_mut(kind) = items.into_iter().filter_map(|raw| ListItem::read(kind, raw)).collect();
        }
        Some(listing)
    }
}

/// Format version of the serialized listing. Caches with another version are ignored.
const FORMAT: u32 = 3;

/// Persists lists across restarts, keyed by a hash of the definition they came from.
pub trait ListCache: Send + Sync {
    fn load(&self, definition: &str) -> Option<Listing>;
    /// Stores a listing. The implementation reports failures, which only slow down the next start.
    fn store(&self, definition: &str, listing: &Listing);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_survives_its_round_trip_byte_for_byte() {
        let tool = Raw::parse(r#"{"name":"t","inputSchema": {"type":"object"}, "x":1.50}"#).expect("valid");
        let listing = Listing {
            tools: vec![ListItem::read(ListKind::Tools, tool).expect("named")],
            instructions: Some("use it".into()),
            fetched_at: 7,
            sends_requests: true,
            revision: Some("2026-07-28".into()),
            ttl_ms: Some(5),
            sanitized: vec![SanitizedItem { kind: "tool".into(), name: "t".into(), removed: 3, left_out: false }],
            ..Listing::default()
        };
        assert_eq!(Listing::from_raw(&listing.raw()), Some(listing));
    }

    #[test]
    fn an_item_without_a_name_is_not_listed() {
        let nameless = Raw::parse(r#"{"inputSchema":{}}"#).expect("valid");
        assert_eq!(ListItem::read(ListKind::Tools, nameless), None);
    }
}

//! MCP listing of a module.

use hikite_core::json::{Object, Raw};
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::risk::Risk;
use serde_json::json;

use super::Service;
use super::prompt::ServicePrompt;
use super::tool::ServiceTool;
use crate::file::TextLanguage;

impl Service {
    pub(super) fn offer(&self, api_version: Option<&str>, docs: Option<&str>) -> Listing {
        let read = |kind: ListKind, raw: Raw| ListItem::read(kind, raw);
        let tools = self.tools.iter().filter_map(|(name, tool)| read(ListKind::Tools, self.definition(name, tool)));
        let templates = self.resources.iter().map(|resource| resource.definition(self.language));
        let (fixed, templates): (Vec<_>, Vec<_>) = templates.partition(|(_, is_fixed)| *is_fixed);
        let of = |kind: ListKind, raws: Vec<(Raw, bool)>| {
            raws.into_iter().filter_map(move |(raw, _)| read(kind, raw)).collect()
        };
        let prompts = self.prompts.iter().map(|prompt: &ServicePrompt| prompt.definition(self.language));
        let mut info = Object::default().with("name", &*self.name).with("title", &*self.title);
        info.set("version", api_version.unwrap_or(env!("CARGO_PKG_VERSION")));
        if let Some(docs) = docs {
            info.set("websiteUrl", docs);
        }
        Listing {
            tools: tools.collect(),
            resources: of(ListKind::Resources, fixed),
            templates: of(ListKind::Templates, templates),
            prompts: prompts.filter_map(|raw| read(ListKind::Prompts, raw)).collect(),
            info,
            capabilities: Object::default()
                .with("tools", Raw::empty_object())
                .with("resources", Raw::empty_object())
                .with("prompts", Raw::empty_object()),
            ..Listing::default()
        }
    }

    fn definition(&self, name: &str, tool: &ServiceTool) -> Raw {
        let mut words = tool.description.get(self.language).to_owned();
        if !tool.one_of.is_empty() {
            let names = tool.one_of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            words = match self.language {
                TextLanguage::English => format!("{words} Give exactly one of {names}."),
                TextLanguage::Japanese => format!("{words} {names} のうち一つだけを指定します。"),
            };
        }
        Raw::of(&json!({
            "name": name,
            "description": words,
            "inputSchema": tool.schema,
            "annotations": {
                "readOnlyHint": tool.risk == Risk::Read,
                "destructiveHint": tool.risk == Risk::Destructive,
                "openWorldHint": true,
            },
        }))
    }
}

//! Resource URIs found in results. A server need not list the resources its tools point at; a caller who received
//! such a URI may read it, and the read goes to the module that returned it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::json::Raw;
use memchr::memmem;
use parking_lot::Mutex;

/// Maximum number of URIs in all, per caller, and per result.
const ALL: usize = 20_000;
const EACH: usize = 1000;
const PER_RESULT: usize = 200;
/// Maximum length of a URI; longer ones are ignored.
const BYTES: usize = 2 * 1024;
/// Maximum size of a result that is scanned for URIs.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct ResourceLinks(Mutex<ResourceLinkTable>);

#[derive(Default)]
struct ResourceLinkTable {
    callers: HashMap<LinkOwner, VecDeque<ResourceLink>>,
    count: usize,
}

/// Subject and project that a URI belongs to: a URI given to one caller opens nothing for another.
type LinkOwner = (Arc<str>, Option<Arc<str>>);

struct ResourceLink {
    uri: Box<str>,
    module: Arc<str>,
}

impl ResourceLinks {
    /// Records the URIs in a module's result.
    pub(crate) fn note(&self, caller: &Caller, module: &Arc<str>, answer: &Raw) {
        // The substring search spares most results the parse.
        let bytes = answer.bytes();
        if bytes.len() > ANSWER_BYTES || memmem::find(bytes, b"\"uri\"").is_none() {
            return;
        }
        let uris = addresses(answer);
        if uris.is_empty() {
            return;
        }
        let owner: LinkOwner = (Arc::clone(&caller.subject), caller.project.clone());
        let mut table = self.0.lock();
        let table = &mut *table;
        let own = table.callers.entry(owner).or_default();
        for uri in uris {
            let before = own.len();
            own.retain(|link| *link.uri != *uri);
            own.push_back(ResourceLink { uri: uri.into(), module: Arc::clone(module) });
            if own.len() > EACH {
                own.pop_front();
            }
            table.count = table.count + own.len() - before;
        }
        if table.count > ALL {
            table.evict();
        }
    }

    /// Returns the module that most recently returned this URI to the caller.
    pub(crate) fn module_of(&self, caller: &Caller, uri: &str) -> Option<Arc<str>> {
        let table = self.0.lock();
        let owner: LinkOwner = (Arc::clone(&caller.subject), caller.project.clone());
        let link = table.callers.get(&owner)?.iter().rev().find(|link| *link.uri == *uri)?;
        Some(Arc::clone(&link.module))
    }
}

impl ResourceLinkTable {
    /// Evicts the older half of the largest caller's URIs until the total fits.
    fn evict(&mut self) {
        while self.count > ALL {
            let Some(most) = self.callers.values_mut().max_by_key(|own| own.len()) else { return };
            let removed = (most.len() / 2).max(1);
            most.drain(..removed);
            self.count -= removed;
            self.callers.retain(|_, own| !own.is_empty());
        }
    }
}

/// Returns the URIs of resource links and embedded resources in a tool result or in prompt messages.
fn addresses(answer: &Raw) -> Vec<String> {
    let Some(members) = answer.object() else { return Vec::new() };
    let content = members.get("content").and_then(Raw::items).unwrap_or_default();
    let messages = members.get("messages").and_then(Raw::items).unwrap_or_default();
    let message_content = messages.iter().filter_map(|message| message.object()?.get("content").cloned());
    let blocks = content.into_iter().chain(message_content);
    let address = |block: Raw| {
        let block = block.object()?;
        match block.text("type")?.as_str() {
            "resource_link" => block.text("uri"),
            "resource" => block.get("resource")?.object()?.text("uri"),
            _ => None,
        }
    };
    blocks.filter_map(address).filter(|uri| !uri.is_empty() && uri.len() <= BYTES).take(PER_RESULT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::raw;

    fn answer(uri: &str) -> Raw {
        raw(&format!(r#"{{"content":[{{"type":"resource_link","uri":"{uri}","name":"x"}}]}}"#))
    }

    #[test]
    fn an_address_is_remembered_for_whom_it_was_given_to() {
        let (links, alice) = (ResourceLinks::default(), Caller::named("alice"));
        links.note(&alice, &"a".into(), &answer("x:1"));
        links.note(&alice, &"b".into(), &answer("x:2"));
        assert_eq!(links.module_of(&alice, "x:1").as_deref(), Some("a"));
        assert_eq!(links.module_of(&alice, "x:2").as_deref(), Some("b"));
        for other in [Caller::named("bob"), alice.within("work".into())] {
            assert_eq!(links.module_of(&other, "x:1"), None);
        }
        links.note(&alice, &"b".into(), &answer("x:1"));
        assert_eq!(links.module_of(&alice, "x:1").as_deref(), Some("b"), "the latest counts");
    }

    #[test]
    fn what_is_embedded_and_what_prompts_say_counts_too() {
        let result = raw(r#"{"content":[{"type":"text","text":"\"uri\""},
            {"type":"resource","resource":{"uri":"x:1","text":"t"}}]}"#);
        assert_eq!(addresses(&result), ["x:1"]);
        let prompt = raw(r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"x:2","name":"n"}}]}"#);
        assert_eq!(addresses(&prompt), ["x:2"]);
    }

    #[test]
    fn there_are_never_more_than_the_bounds_say() {
        let links = ResourceLinks::default();
        for caller in 0..30 {
            let caller = Caller::named(format!("c{caller}"));
            for number in 0..EACH + 10 {
                links.note(&caller, &"m".into(), &answer(&format!("x:{number}")));
            }
            assert_eq!(links.module_of(&caller, "x:0"), None, "the oldest gives way");
        }
        let table = links.0.lock();
        assert!(table.count <= ALL && table.count == table.callers.values().map(VecDeque::len).sum::<usize>());
    }
}

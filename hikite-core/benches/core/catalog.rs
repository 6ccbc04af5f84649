//! Finding a tool in the catalog, by its key and by the name the `direct` surface shows, among few tools and
//! among ten thousand; a walk over all of them for comparison.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::SessionId;
use hikite_core::catalog::{Catalog, ModuleRule};
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceState};
use hikite_core::switch::Switches;
use serde_json::{Value, json};

use crate::timer::Timer;

const PER_MODULE: usize = 100;

pub(crate) fn rows(timer: Timer) -> Vec<Value> {
    [100, 1000, 10_000].into_iter().map(|count| row(timer, count)).collect()
}

fn row(timer: Timer, count: usize) -> Value {
    let rules: Vec<ModuleRule> = (0..count / PER_MODULE).map(rule).collect();
    let catalog = Catalog::build(&rules, &[], &Switches::default(), &Catalog::default());
    let keys: Vec<ToolKey> = catalog.tools().map(|tool| tool.key.clone()).collect();
    let names: Vec<Arc<str>> = catalog.tools().map(|tool| Arc::clone(&tool.direct.shown)).collect();
    assert_eq!(keys.len(), count);
    let mut order = scattered(count);
    let by_key = timer.nanoseconds(|| catalog.tool_by_key(&keys[order.next()]).expect("found").is_enabled());
    let by_name = timer.nanoseconds(|| catalog.tool_by_direct_name(&names[order.next()]).expect("found").is_enabled());
    let absent = ToolKey::new("module_7", "absent");
    let no_tool = timer.nanoseconds(|| catalog.tool_by_key(&absent).is_none());
    let walk = timer.nanoseconds(|| {
        let key = &keys[order.next()];
        catalog.tools().find(|tool| tool.key == *key).expect("found").is_enabled()
    });
    let build =
        timer.nanoseconds(|| Catalog::build(&rules, &[], &Switches::default(), &Catalog::default()).modules.len());
    json!([count, by_key, by_name, no_tool, walk, build / 1e6])
}

struct Order {
    at: usize,
    count: usize,
}

/// In no order that a cache could guess.
fn scattered(count: usize) -> Order {
    Order { at: 0, count }
}

impl Order {
    fn next(&mut self) -> usize {
        self.at = (self.at + 7919) % self.count;
        self.at
    }
}

fn rule(module: usize) -> ModuleRule {
    let tools = (0..PER_MODULE).map(|tool| {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let name = format!("update_field_{tool}");
        let definition = json!({ "name": name, "description": "Updates one field.", "inputSchema": schema });
        ListItem::read(ListKind::Tools, Raw::of(&definition)).expect("named")
    });
    let listing = Listing { tools: tools.collect(), ..Listing::default() };
    ModuleRule::new(format!("module_{module}"), Arc::new(Fixed(Arc::new(listing))))
}

/// A source that only has a list.
#[derive(Debug)]
struct Fixed(Arc<Listing>);

impl Source for Fixed {
    fn listing(&self) -> Option<Arc<Listing>> {
        Some(Arc::clone(&self.0))
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn call(&self, _: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        Box::pin(async { Ok(Raw::null()) })
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

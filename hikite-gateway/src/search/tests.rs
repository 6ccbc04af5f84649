//! Search as the gateway runs it, with an encoder that counts its calls, a scripted provider, and sources whose tools
//! change.

mod cloud;
mod hidden;
mod index;
mod memory;
mod surface;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::signer::HmacSigner;
use hikite_core::source::{BoxFuture, CallContext, CallOrigin, Invocation, NoClient, Source, SourceEvent, SourceState};
use hikite_store::Store;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::SearchSettings;
use crate::admission::Throttle;
use crate::builder::GatewayBuilder;
use crate::catalogs::GatewayRules;
use crate::gateway::Gateway;
use crate::probe::store;
use crate::registry::RegistryStore;
use crate::surface::{Surface, Surfaces};

/// A source whose tools tests replace, with or without an account; a tool named `broken` fails.
#[derive(Debug, Default)]
struct ToolListSource {
    tools: Mutex<Vec<(String, String)>>,
    lacks_account: AtomicBool,
}

impl ToolListSource {
    fn of(tools: &[(&str, &str)]) -> Arc<Self> {
        let source = Arc::new(Self::default());
        source.put(tools);
        source
    }

    fn put(&self, tools: &[(&str, &str)]) {
        *self.tools.lock() = tools.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    }
}

impl Source for ToolListSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        let tool = |(name, text): &(String, String)| {
            let schema = json!({ "type": "object", "properties": { "what": { "type": "string" } } });
            let definition = json!({ "name": name, "description": text, "inputSchema": schema });
            ListItem::read(ListKind::Tools, Raw::of(&definition)).expect("named")
        };
        Some(Arc::new(Listing { tools: self.tools.lock().iter().map(tool).collect(), ..Listing::default() }))
    }

    fn state(&self) -> SourceState {
        if self.lacks_account.load(Ordering::Relaxed) {
            return SourceState::NeedsLogin { provider: "vendor".into() };
        }
        SourceState::Running
    }

    fn login_hint(&self) -> Option<String> {
        Some("Log in to it.".to_owned())
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn call(&self, invocation: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let name = invocation.params.text("name").unwrap_or_default();
        Box::pin(async move {
            match name.as_str() {
                "broken" => Err(Error::new(ErrorKind::UpstreamUnavailable, "it is down")),
                "sad" => Ok(Raw::of(&json!({ "content": [], "isError": true }))),
                _ => Ok(Raw::of(&json!({ "content": [{ "type": "text", "text": invocation.params.raw().as_str() }] }))),
            }
        })
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// An encoder that counts its calls; the letters of a text are its vector.
#[derive(Debug, Default)]
struct LetterEncoder {
    tools: AtomicUsize,
    /// Makes the encoder block.
    waits: AtomicBool,
}

impl LetterEncoder {
    fn read(&self) -> usize {
        self.tools.load(Ordering::Relaxed)
    }

    fn vector(text: &str) -> Vector {
        let mut counts = [0.0_f32; 26];
        for letter in text.bytes().filter(u8::is_ascii_lowercase) {
            counts[usize::from(letter - b'a')] += 1.0;
        }
        Vector::of(&counts)
    }
}

impl Encoder for LetterEncoder {
    fn model(&self) -> &'static str {
        "letters"
    }

    fn question(&self, text: &str) -> Vector {
        Self::vector(text)
    }

    fn tool(&self, text: &str) -> Vector {
        while self.waits.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.tools.fetch_add(1, Ordering::Relaxed);
        Self::vector(text)
    }
}

const TOOLS: &[(&str, &str)] = &[
    ("create_issue", "Creates an issue in a repository. Needs the right to write."),
    ("read_file", "Reads a file from the disk."),
    ("send_mail", "Sends a mail to somebody."),
];

fn gateway_on(store: Store, sources: &[(&str, &Arc<ToolListSource>)]) -> Arc<Gateway> {
    let registry = RegistryStore::new(store, Arc::new(|_, _| Err(Vec::new())));
    let gateway = GatewayBuilder::new(Arc::new(Limits::default()), HmacSigner::new([7; 32]), registry).build();
    let throttle = Throttle { concurrency: 9, queue: 9, rate: None, timeout: Duration::from_secs(9) };
    let rule = |(name, source): &(&str, &Arc<ToolListSource>)| {
        let rule = ModuleRule {
            description: format!("What {name} does. And more."),
            ..ModuleRule::new(*name, Arc::clone(source) as Arc<dyn Source>)
        };
        (rule, throttle)
    };
    gateway.apply(GatewayRules { modules: sources.iter().map(rule).collect(), ..GatewayRules::default() });
    gateway
}

async fn gateway(settings: SearchSettings) -> (Arc<Gateway>, Arc<ToolListSource>) {
    let source = ToolListSource::of(TOOLS);
    let gateway = gateway_on(store().await, &[("m", &source)]);
    gateway.search().set_settings(settings);
    (gateway, source)
}

fn with_encoder(encoder: &Arc<LetterEncoder>) -> SearchSettings {
    let encoder = Arc::clone(encoder) as Arc<dyn Encoder>;
    SearchSettings { encoder: Some(encoder), ..SearchSettings::default() }
}

fn change(gateway: &Arc<Gateway>) {
    (gateway.catalogs().listener("m"))(SourceEvent::ListChanged);
}

fn context(session: u64) -> CallContext {
    let caller = Caller::owner();
    let session =
        Arc::new(Session { id: SessionId(session), caller, client_capabilities: ClientCapabilities::default() });
    CallContext {
        session,
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    }
}

async fn call_in(gateway: &Gateway, context: CallContext, name: &str, arguments: Value, meta: Value) -> Value {
    let mut params = Object::default().with("name", name).with("arguments", Raw::of(&arguments));
    if !meta.is_null() {
        params.set("_meta", Raw::of(&meta));
    }
    let surfaces = Surfaces::of([Surface::Search]);
    gateway.call_tool(surfaces, params, context).await.expect("a result").raw.value()
}

async fn call(gateway: &Gateway, name: &str, arguments: Value) -> Value {
    call_in(gateway, context(1), name, arguments, Value::Null).await
}

async fn discover(gateway: &Gateway, query: &str) -> Value {
    call(gateway, "tool_discovery", json!({ "query": [query] })).await
}

fn meta(result: &Value) -> Value {
    result["_meta"]["hikite/search"].clone()
}

fn keys(result: &Value) -> Vec<&str> {
    let results = result["structuredContent"]["results"].as_array().expect("results");
    results.iter().map(|tool| tool["toolKey"].as_str().expect("a key")).collect()
}

/// Polls until a condition holds.
async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("it does not come true");
}

//! A scripted source for tests, and a gateway in front of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hikite_core::call_policy::CallPolicy;
use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::signer::HmacSigner;
use hikite_core::source::{BoxFuture, CallContext, CallOrigin, Invocation, NoClient, Source, SourceState};

use crate::admission::Throttle;
use crate::builder::GatewayBuilder;
use crate::catalogs::GatewayRules;
use crate::command::{CallOptions, Command, ToolTarget};
use crate::gateway::Gateway;
use crate::probe;

pub(crate) type FakeAnswer = BoxFuture<'static, Result<Raw, Error>>;

/// A source with the tools `read` (read-only), `put` (idempotent) and `add` (neither), and the resource `x:y`.
pub(crate) struct FakeSource {
    calls: AtomicUsize,
    /// Called with the number of the call, from one.
    answer: Box<dyn Fn(usize) -> FakeAnswer + Send + Sync>,
}

impl FakeSource {
    pub(crate) fn new(answer: impl Fn(usize) -> FakeAnswer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { calls: AtomicUsize::new(0), answer: Box::new(answer) })
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for FakeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl Source for FakeSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        let item = |kind, text: &str| ListItem::read(kind, raw(text)).expect("named");
        let tool = |text| item(ListKind::Tools, text);
        Some(Arc::new(Listing {
            tools: vec![
                tool(r#"{"name":"read","annotations":{"readOnlyHint":true}}"#),
                tool(r#"{"name":"put","annotations":{"idempotentHint":true}}"#),
                tool(r#"{"name":"add"}"#),
            ],
            resources: vec![item(ListKind::Resources, r#"{"uri":"x:y","name":"y"}"#)],
            ..Listing::default()
        }))
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn call(&self, _: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        (self.answer)(self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

pub(crate) fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).expect("valid JSON")
}

/// Builds the result of a call, with this number in it.
pub(crate) fn result(number: usize) -> Raw {
    raw(&format!(r#"{{"content":[],"n":{number}}}"#))
}

pub(crate) fn rules(source: &Arc<FakeSource>, policy: CallPolicy, resources: CallPolicy) -> GatewayRules {
    let rule = ModuleRule { policy, resources, ..ModuleRule::new("m", Arc::clone(source) as Arc<dyn Source>) };
    let throttle = Throttle { concurrency: 500, queue: 500, rate: None, timeout: Duration::from_secs(30) };
    GatewayRules { modules: vec![(rule, throttle)], ..GatewayRules::default() }
}

pub(crate) fn gateway(source: &Arc<FakeSource>, policy: CallPolicy) -> Arc<Gateway> {
    let gateway =
        GatewayBuilder::new(Arc::new(Limits::default()), HmacSigner::new([7; 32]), probe::registry_detached()).build();
    gateway.apply(rules(source, policy, policy));
    gateway
}

pub(crate) fn context(subject: &str) -> CallContext {
    let caller = Caller::named(subject);
    let session = Arc::new(Session { id: SessionId(1), caller, client_capabilities: ClientCapabilities::default() });
    CallContext {
        session,
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    }
}

pub(crate) fn command(tool: &str, arguments: &str) -> Command {
    let params = Object::default().with("name", tool).with("arguments", raw(arguments));
    Command::Call { target: ToolTarget::Named(format!("m:{tool}")), params, options: CallOptions::default() }
}

/// Calls a tool as the owner.
pub(crate) async fn call(gateway: &Gateway, tool: &str) -> Result<Raw, Error> {
    gateway.dispatch(command(tool, "{}"), context("owner")).await
}

//! A scripted source for tests, and a gateway in front of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hikite_core::about::Policy;
use hikite_core::caller::{Abilities, Caller, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{Item, ListKind, Listing};
use hikite_core::seal::Seal;
use hikite_core::source::{BoxFuture, CallContext, Invocation, Nobody, Origin, Source, State};

use crate::command::{CallOptions, Command, Target};
use crate::gate::Throttle;
use crate::gateway::{Gateway, Rules};
use crate::probe;

pub(crate) type Answer = BoxFuture<'static, Result<Raw, Error>>;

/// A source with the tools `read` (read-only), `put` (idempotent) and `add` (neither), and the resource `x:y`.
pub(crate) struct Fake {
    calls: AtomicUsize,
    /// Called with the number of the call, from one.
    answer: Box<dyn Fn(usize) -> Answer + Send + Sync>,
}

impl Fake {
    pub(crate) fn new(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { calls: AtomicUsize::new(0), answer: Box::new(answer) })
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl Source for Fake {
    fn listing(&self) -> Option<Arc<Listing>> {
        let item = |kind, text: &str| Item::read(kind, raw(text)).expect("named");
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

    fn state(&self) -> State {
        State::Running
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

pub(crate) fn rules(source: &Arc<Fake>, policy: Policy, resources: Policy) -> Rules {
    let rule =
        ModuleRule { policy, resources, ..ModuleRule::new("m", Arc::clone(source) as Arc<dyn Source>) };
    let throttle = Throttle { concurrency: 500, queue: 500, rate: None, timeout: Duration::from_secs(30) };
    Rules { modules: vec![(rule, throttle)], ..Rules::default() }
}

pub(crate) fn gateway(source: &Arc<Fake>, policy: Policy) -> Arc<Gateway> {
    let gateway = Gateway::new(Arc::new(Limits::default()), Seal::new([7; 32]), probe::registry_aside());
    gateway.apply(rules(source, policy, policy));
    gateway
}

pub(crate) fn context(subject: &str) -> CallContext {
    let caller = Caller::named(subject);
    let session = Arc::new(Session { id: SessionId(1), caller, abilities: Abilities::default() });
    CallContext {
        session,
        back: Arc::new(Nobody),
        origin: Origin::default(),
        takes_rounds: false,
        account: None,
    }
}

pub(crate) fn command(tool: &str, arguments: &str) -> Command {
    let params = Object::default().with("name", tool).with("arguments", raw(arguments));
    Command::Call { target: Target::Named(format!("m:{tool}")), params, options: CallOptions::default() }
}

/// Calls a tool as the owner.
pub(crate) async fn call(gateway: &Gateway, tool: &str) -> Result<Raw, Error> {
    gateway.dispatch(command(tool, "{}"), context("owner")).await
}

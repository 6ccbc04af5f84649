//! A gateway for the tests of this crate: a store in memory, and tools that are functions.

use std::sync::Arc;

use hikite_core::caller::{Abilities, Caller, Session, SessionId};
use hikite_core::error::Error;
use hikite_core::fault::Fault;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::seal::Seal;
use hikite_core::source::{Backchannel, BoxFuture, CallContext, Implementation, Origin, Question};
use hikite_store::{Store, StoreUrl};

use crate::gateway::Gateway;
use crate::registry::{Maker, Registry};

pub(crate) async fn store() -> Store {
    Store::open(&StoreUrl::parse("sqlite::memory:").expect("an address")).await.expect("a store in memory")
}

pub(crate) async fn gateway() -> Arc<Gateway> {
    gateway_on(store().await).await
}

/// Tools answer with their `http` member and the arguments; one that names no `url` cannot be made.
pub(crate) async fn gateway_on(store: Store) -> Arc<Gateway> {
    let maker: Maker = Arc::new(|http, _| {
        let named = http.object().is_some_and(|http| http.get("url").is_some());
        let echo: Arc<dyn Implementation> = Arc::new(Echo(http.clone()));
        if named { Ok(echo) } else { Err(vec![Fault::new("/http/url", "`url` is required")]) }
    });
    let gateway = Gateway::new(Arc::new(Limits::default()), Seal::new([7; 32]), Registry::new(store, maker));
    gateway.open_store().await.expect("an open store");
    gateway
}

#[derive(Debug)]
struct Echo(Raw);

impl Implementation for Echo {
    fn run(&self, arguments: Object, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let value = Object::default().with("http", self.0.clone()).with("arguments", arguments).raw();
        Box::pin(std::future::ready(Ok(value)))
    }
}

pub(crate) fn context(caller: Caller) -> CallContext {
    let session = Session { id: SessionId(1), caller, abilities: Abilities::default() };
    CallContext {
        session: Arc::new(session),
        back: Arc::new(Silent),
        origin: Origin::default(),
        takes_rounds: false,
    }
}

struct Silent;

impl Backchannel for Silent {
    fn progress(&self, _: Object) {}

    fn log(&self, _: Raw) {}

    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        Box::pin(std::future::ready(Err(Raw::null())))
    }
}

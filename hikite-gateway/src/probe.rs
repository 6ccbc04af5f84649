//! A gateway for the tests of this crate, with an in-memory store and tools that are functions.

use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::registration::HttpToolBuilder;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{BoxFuture, CallContext, ToolHandler};
use hikite_core::violation::Violation;
use hikite_store::{Store, StoreUrl};

use crate::builder::GatewayBuilder;
use crate::gateway::Gateway;
use crate::registry::RegistryStore;

pub(crate) async fn store() -> Store {
    Store::open(&StoreUrl::parse("sqlite::memory:").expect("an address")).await.expect("a store in memory")
}

/// Opens a store that is never queried, outside the paused clock of the test: opening one takes time.
pub(crate) fn registry_detached() -> RegistryStore {
    let open = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(store())
    };
    let store = std::thread::spawn(open).join().expect("a store");
    RegistryStore::new(store, Arc::new(|_, _| Err(Vec::new())))
}

pub(crate) async fn gateway() -> Arc<Gateway> {
    gateway_on(store().await).await
}

/// Builds a gateway whose tools return their `http` member and the arguments; a tool without `url` is rejected.
pub(crate) async fn gateway_on(store: Store) -> Arc<Gateway> {
    let maker: HttpToolBuilder = Arc::new(|http, _| {
        let named = http.object().is_some_and(|http| http.get("url").is_some());
        let echo: Arc<dyn ToolHandler> = Arc::new(EchoTool(http.clone()));
        if named { Ok(echo) } else { Err(vec![Violation::new("/http/url", "`url` is required")]) }
    });
    let gateway =
        GatewayBuilder::new(Arc::new(Limits::default()), HmacSigner::new([7; 32]), RegistryStore::new(store, maker))
            .build();
    gateway.admin().store.open().await.expect("an open store");
    gateway
}

#[derive(Debug)]
struct EchoTool(Raw);

impl ToolHandler for EchoTool {
    fn run(&self, arguments: Object, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let value = Object::default().with("http", self.0.clone()).with("arguments", arguments).raw();
        Box::pin(std::future::ready(Ok(value)))
    }
}

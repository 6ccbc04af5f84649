//! An app without upstreams, for unit tests.

use std::sync::Arc;

use hikite_core::limits::Limits;
use hikite_core::seal::Seal;
use hikite_gateway::{Gateway, Identity, Registry, Safe, Surface, Surfaces};
use hikite_store::{Store, StoreUrl};
use hikite_vault::{MasterKey, Ring};
use tokio_util::sync::CancellationToken;

use crate::{App, Auth, Origins, Proxies, Settings};

pub(crate) fn app() -> Arc<App> {
    app_with(Auth::None)
}

pub(crate) fn app_with(auth: Auth) -> Arc<App> {
    let settings = Settings {
        auth,
        oauth: None,
        origins: Origins::default(),
        proxies: Proxies::default(),
        tls: None,
        surfaces: Surfaces::of([Surface::Direct]),
        short_names: Vec::new(),
        rate: None,
        metrics_token: None,
        document: None,
    };
    let limits = Arc::new(Limits::default());
    let store = store();
    let registry = Registry::new(store.clone(), Arc::new(|_, _| Err(Vec::new())));
    let gateway = Gateway::new(Arc::clone(&limits), Seal::new([7; 32]), registry);
    let key = MasterKey::random().expect("random");
    let safe = Safe::new(store, Ring::new(key, Vec::new()));
    gateway.people().identify_with(Arc::new(Identity::new(Arc::new(safe))));
    App::new(gateway, limits, settings, CancellationToken::new())
}

/// Opens an in-memory store on its own thread, because a test may have a paused clock.
fn store() -> Store {
    let open = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let url = StoreUrl::parse("sqlite::memory:").expect("an address");
        runtime.block_on(Store::open(&url)).expect("a store in memory")
    };
    std::thread::spawn(open).join().expect("a store")
}

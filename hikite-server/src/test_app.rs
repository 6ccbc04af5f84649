//! An app without upstreams, for unit tests.

use std::sync::Arc;

use hikite_core::limits::Limits;
use hikite_core::signer::HmacSigner;
use hikite_gateway::{GatewayBuilder, RegistryStore, Surface, Surfaces};
use hikite_identity::{Identity, People, SecretStore};
use hikite_store::{Store, StoreUrl};
use hikite_vault::{KeyRing, MasterKey};
use tokio_util::sync::CancellationToken;

use crate::{App, Auth, Origins, ServerSettings, TrustedProxies};

pub(crate) fn app() -> Arc<App> {
    app_with(Auth::None)
}

pub(crate) fn app_with(auth: Auth) -> Arc<App> {
    let settings = ServerSettings {
        auth,
        oauth: None,
        origins: Origins::default(),
        proxies: TrustedProxies::default(),
        tls: None,
        surfaces: Surfaces::of([Surface::Direct]),
        short_names: Vec::new(),
        rate: None,
        metrics_token: None,
        document: None,
    };
    let limits = Arc::new(Limits::default());
    let store = store();
    let registry = RegistryStore::new(store.clone(), Arc::new(|_, _| Err(Vec::new())));
    let key = MasterKey::random().expect("random");
    let secret_store = SecretStore::new(store.clone(), KeyRing::new(key, Vec::new()));
    let people = People::with_identity(store, Arc::new(Identity::new(Arc::new(secret_store))), None);
    let builder = GatewayBuilder::new(Arc::clone(&limits), HmacSigner::new([7; 32]), registry);
    let gateway = GatewayBuilder { people: Arc::new(people), ..builder }.build();
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

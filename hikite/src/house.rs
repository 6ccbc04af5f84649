//! The composition root: builds a running gateway and its upstreams from a checked config, and applies changed
//! configs to it. Upstreams whose definition did not change keep running.

mod server;
mod store_loop;
mod stored;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::join_all;
use hikite_core::catalog::ModuleRule;
use hikite_core::credential::{Exchanger, Verifier};
use hikite_core::keeper::Keeper;
use hikite_core::limits::Limits;
use hikite_core::listing::ListCache;
use hikite_core::permission::Permissions;
use hikite_core::register::{Maker, Registration};
use hikite_core::seal::Seal;
use hikite_core::search::encoder::Encoder;
use hikite_core::source::{Implementation, Source};
use hikite_egress::Client;
use hikite_gateway::identity::sealing_key;
use hikite_gateway::{
    AccountSettings, Accounts, Entrances, Gateway, Identity, Nodes, Registry, Rules, Safe, Throttle,
    Unwritten,
};
use hikite_modules::{Service, Settings};
use hikite_store::{Store, StoreListCache};
use hikite_upstream::{Definition, Environment, ProcessLimits, Spawner, Upstream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, ProviderConfig, ServerConfig, Share};
use crate::endpoint::Endpoint;
use crate::exchange::Configured;
use crate::fetch::Fetcher;
use crate::master::Places;
use crate::services::Services;
use crate::sieve::Processes;
use crate::verify::Prober;
use crate::{access, providers, search, token};
pub(crate) use server::header_map;
use server::{kind_of, module, place, throttle, transport};
use stored::{Desk, Stored};

/// At the end: for what is written down beside the audit.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub struct House {
    pub gateway: Arc<Gateway>,
    pub limits: Arc<Limits>,
    pub store: Store,
    /// Secrets, encrypted in the store.
    pub safe: Arc<Safe>,
    /// Key that nodes authenticate each other with; `None` if the vault could not be opened.
    node_key: Option<[u8; 32]>,
    lists: Arc<StoreListCache>,
    environment: Environment,
    /// HTTP client for addresses that no administrator configured.
    guarded: Client,
    upstreams: Mutex<HashMap<Arc<str>, Running>>,
    /// The active config.
    config: Mutex<Option<Config>>,
    /// Servers and categories configured at runtime, the store revision they were read at, and the lock for changes.
    stored: Mutex<Stored>,
    stored_revision: AtomicI64,
    changing: tokio::sync::Mutex<()>,
    /// Builds the HTTP tools of the config; an administrator chose their addresses.
    maker: Maker,
    services: Mutex<Services>,
    /// Accounts defined in the config.
    configured: Arc<Configured>,
    prober: Arc<Prober>,
    pub accounts: Arc<Accounts>,
    /// Modules of the embedding program.
    own: Vec<ModuleRule>,
    /// The built-in sentence encoder; its weights are unpacked on first use.
    encoder: Arc<dyn Encoder>,
    stopping: CancellationToken,
    /// Tasks that drain upstreams removed by a reload, and reports that wait for tool lists.
    pub(crate) tasks: TaskTracker,
}

impl std::fmt::Debug for House {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("House").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct Running {
    upstream: Upstream,
    /// The upstream as the gateway holds it; the module is unchanged as long as this pointer is.
    source: Arc<dyn Source>,
    hash: String,
    share: Share,
    keeper: Keeper,
}

impl Running {
    fn is(&self, server: &ServerConfig, keeper: Keeper) -> bool {
        self.hash == server.definition_hash && self.share == server.share && self.keeper == keeper
    }
}

impl House {
    /// Starts everything the config names. `program` is the hikite binary, which guards stdio servers and runs jq
    /// programs.
    pub async fn start(config: &Config, program: PathBuf) -> Result<Arc<Self>> {
        let house = Self::start_with(config, program.clone(), Vec::new()).await?;
        house.sift_with(program);
        Ok(house)
    }

    /// Sets the binary that runs jq programs; it must be hikite itself.
    pub(crate) fn sift_with(&self, program: PathBuf) {
        self.gateway.sieve_with(Arc::new(Processes::new(program, Arc::clone(&self.limits))));
    }

    /// Starts everything the config names, plus the modules of the embedding program.
    pub(crate) async fn start_with(
        config: &Config,
        program: PathBuf,
        own: Vec<ModuleRule>,
    ) -> Result<Arc<Self>> {
        if config.store.is_none() {
            token::make_folder(&config.data)?;
        }
        let store = Store::open_keeping(&config.store_url(), &config.data).await?;
        let safe = Arc::new(Places::of(config).safe(&store).await?);
        let lists = store.list_cache().await?;
        let limits = Arc::new(config.limits.clone());
        let client = Client::new();
        let processes = ProcessLimits { running: limits.stdio_processes, starting: limits.starting };
        let environment = Environment {
            spawner: Spawner::start(program, processes).context("cannot start a thread")?,
            client: client.clone(),
            cache: Arc::clone(&lists) as Arc<dyn ListCache>,
            limits: Arc::clone(&limits),
        };
        let guarded = Client::guarded(config.egress.rules());
        let registry =
            Registry::new(store.clone(), hikite_modules::maker(guarded.clone(), Arc::clone(&limits)));
        let maker = hikite_modules::maker(client, Arc::clone(&limits));
        let configured = Arc::<Configured>::default();
        let prober = Arc::<Prober>::default();
        let accounts = accounts(&safe, &environment.client, &configured, &prober);
        let (seal, node_key) = keys(&safe).await?;
        let house = Arc::new(Self {
            gateway: Gateway::new(Arc::clone(&limits), Seal::new(seal), registry),
            node_key,
            limits,
            store,
            safe,
            lists,
            environment,
            guarded,
            upstreams: Mutex::default(),
            config: Mutex::default(),
            stored: Mutex::default(),
            stored_revision: AtomicI64::new(-1),
            changing: tokio::sync::Mutex::default(),
            maker,
            services: Mutex::default(),
            configured,
            prober,
            accounts,
            own,
            encoder: search::encoder(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        house.gateway.exchange_with(Arc::clone(&house.accounts));
        if let Some(rules) = config.audit.rules() {
            house.gateway.start_audit(rules, Some(config.data.clone()));
        }
        house.let_people_in().await;
        house.gateway.work_with(Arc::new(Desk(Arc::downgrade(&house))));
        if let Err(error) = house.move_in(config).await {
            // A retry must not run beside what this attempt started.
            house.stop().await;
            return Err(error);
        }
        house.tasks.spawn(Arc::clone(&house).follow_store());
        house.tasks.spawn(Arc::clone(&house).keep_store_tidy());
        Ok(house)
    }

    async fn move_in(self: &Arc<Self>, config: &Config) -> Result<()> {
        self.read_stored().await?;
        // Read before any tool is listed: a tool that differs from its pin must not count as new.
        self.gateway.read_pins().await?;
        self.apply(config)?;
        self.gateway.open_store().await?;
        Ok(())
    }

    /// Registers this process as a node on the store, and returns the node list and the key that nodes share.
    pub(crate) async fn join(&self, url: &str) -> Result<(Arc<Nodes>, [u8; 32])> {
        let key = self.node_key.context("the nodes cannot know each other: the key of the vault is wrong")?;
        let process = self.gateway.process();
        Ok((Nodes::join(self.store.clone(), url, process, self.limits.sessions).await?, key))
    }

    /// Sets up identity and the identity providers.
    async fn let_people_in(&self) {
        let identity = Arc::new(Identity::new(Arc::clone(&self.safe)));
        // A failure must not lock out the holder of the local token, who can repair it.
        if let Err(error) = identity.prepare().await {
            tracing::error!(%error, "nobody can log in: the keys that tokens are signed with do not open");
        }
        self.gateway.people().identify_with(identity);
        let fetcher = Fetcher { client: self.client().clone(), guarded: self.guarded.clone() };
        let entrances = Entrances::new(&self.store, Arc::new(fetcher));
        self.gateway.people().enter_through(Arc::new(entrances));
    }

    /// Applies a config to the running gateway. Upstreams with an unchanged definition keep running.
    pub fn apply(&self, config: &Config) -> Result<()> {
        let stored = self.stored.lock().clone();
        let mut upstreams = self.upstreams.lock();
        let mut next = HashMap::new();
        let mut rules = Rules {
            disabled: config.disabled.clone(),
            categories: stored.categories_beside(config),
            projects: config.projects.clone(),
            default_permissions: config.default_permissions.clone(),
            ..Rules::default()
        };
        let of_file = config.servers.iter().map(|server| (server, Keeper::File));
        let services = self.services(config);
        let others: Vec<&ModuleRule> = services.iter().chain(&self.own).collect();
        let beside = stored.servers_beside(config, &others);
        for (server, keeper) in of_file.chain(beside.iter().map(|server| (*server, Keeper::Store))) {
            let running = match upstreams.get(&server.name) {
                Some(running) if running.is(server, keeper) => running.clone(),
                _ => self.start_upstream(config, server, keeper)?,
            };
            let source = Arc::clone(&running.source);
            let rule = ModuleRule { keeper, ..module(server, source) };
            rules.modules.push((rule, throttle(server, &self.limits)));
            next.insert(Arc::clone(&server.name), running);
        }
        let throttle = Throttle::of(&self.limits);
        rules.modules.extend(services.into_iter().map(|service| (service, throttle)));
        rules.modules.extend(self.own.iter().map(|rule| (rule.clone(), throttle)));
        rules.tools = self.tools(config)?;
        let before = std::mem::replace(&mut *upstreams, next);
        for running in upstreams.values() {
            running.upstream.allow(&config.egress.rules());
        }
        self.gateway.search_with(search::settings(config, self.client(), &self.encoder)?);
        self.gateway.apply(rules);
        self.guarded.allow(config.egress.rules());
        if let Some(entrances) = self.gateway.people().entrances() {
            entrances.follow(&config.issuers, &config.logins);
        }
        for client in [self.client(), &self.guarded] {
            client.speak(config.egress.min_tls);
        }
        for (name, running) in before {
            let stays = upstreams.get(&name).is_some_and(|now| Arc::ptr_eq(&now.source, &running.source));
            if !stays {
                let drain = self.limits.drain;
                self.tasks.spawn(async move { running.upstream.close(drain).await });
            }
        }
        *self.config.lock() = Some(config.clone());
        Ok(())
    }

    /// Returns the service modules that the config names, and updates the accounts they use.
    fn services(&self, config: &Config) -> Vec<ModuleRule> {
        self.configured.follow(&config.providers);
        self.accounts.follow(AccountSettings {
            providers: providers::providers(&config.providers),
            of_the_file: of_the_file(&config.providers),
            public_url: config.server.url(),
            ..AccountSettings::default()
        });
        let settings = Settings {
            client: self.client().clone(),
            exchanger: Arc::clone(&self.accounts) as Arc<dyn Exchanger>,
            limits: Arc::clone(&self.limits),
            language: config.modules.language,
        };
        let rule = |service: Arc<Service>| ModuleRule {
            description: service.description().to_owned(),
            ..ModuleRule::new(Arc::clone(&service.name), service)
        };
        let services = self.services.lock().follow(config, &settings);
        self.prober.follow(&services);
        services.into_iter().map(rule).collect()
    }

    /// Builds the tools that the config registers.
    fn tools(&self, config: &Config) -> Result<Vec<(Registration, Arc<dyn Implementation>)>> {
        config.tools.iter().map(|tool| Ok(hikite_gateway::read_tool(&tool.form, &self.maker)?)).collect()
    }

    /// Ends every upstream, whatever still runs, waits until their processes are gone, and closes the store. Tells what
    /// the audit does not have.
    pub async fn stop(&self) -> Unwritten {
        self.stopping.cancel();
        let upstreams: Vec<Running> = self.upstreams.lock().drain().map(|(_, running)| running).collect();
        join_all(upstreams.iter().map(|running| running.upstream.close(Duration::ZERO))).await;
        self.tasks.close();
        self.tasks.wait().await;
        self.accounts.stop().await;
        // The audit log needs time left if the store does not answer.
        if tokio::time::timeout(LAST_WORDS, self.write_down_the_rest()).await.is_err() {
            tracing::warn!(
                "the store does not answer; the last lists, searches and counts are not written down"
            );
        }
        let unwritten = self.gateway.stop_audit().await;
        self.store.close().await;
        unwritten
    }

    /// Writes data that may be lost without harm.
    async fn write_down_the_rest(&self) {
        self.lists.flush().await;
        self.gateway.stop_search().await;
        if let Err(error) = self.gateway.write_down_news().await {
            tracing::warn!(%error, "since when some tools are known could not be written down");
        }
        if let Err(error) = self.gateway.write_down_day().await {
            tracing::warn!(%error, "the last counts of the day could not be written down");
        }
    }

    /// Returns the HTTP client for configured addresses.
    pub(crate) fn client(&self) -> &Client {
        &self.environment.client
    }

    pub(crate) fn upstream(&self, module: &str) -> Option<Upstream> {
        Some(self.upstreams.lock().get(module)?.upstream.clone())
    }

    /// Returns the upstream with a pending login of this `state`.
    pub(crate) fn awaiting(&self, state: &str) -> Option<(Arc<str>, Upstream)> {
        let upstreams = self.upstreams.lock();
        let found = upstreams.iter().find(|(_, running)| running.upstream.awaits_login(state));
        found.map(|(name, running)| (Arc::clone(name), running.upstream.clone()))
    }

    pub fn stderr_of(&self, module: &str) -> Vec<String> {
        self.upstreams.lock().get(module).map(|running| running.upstream.stderr()).unwrap_or_default()
    }

    fn start_upstream(&self, config: &Config, server: &ServerConfig, keeper: Keeper) -> Result<Running> {
        let definition = Definition {
            name: Arc::clone(&server.name),
            transport: transport(server)?,
            share: match server.share {
                Share::Auto => hikite_upstream::Share::Auto,
                Share::Always => hikite_upstream::Share::Always,
                Share::Never => hikite_upstream::Share::Never,
            },
            access: access::of(config, server, &self.safe)?,
            place: place(server),
            hash: server.definition_hash.clone(),
        };
        let listener = self.gateway.listener(Arc::clone(&server.name));
        let mut environment = self.environment.clone();
        if keeper == Keeper::Store {
            // No administrator configured this address.
            environment.client = self.guarded.clone();
        }
        let upstream = Upstream::start(definition, environment, listener);
        let source: Arc<dyn Source> = Arc::new(upstream.clone());
        Ok(Running { upstream, source, hash: server.definition_hash.clone(), share: server.share, keeper })
    }
}

/// Builds the accounts that services are called with.
fn accounts(
    safe: &Arc<Safe>,
    client: &Client,
    configured: &Arc<Configured>,
    prober: &Arc<Prober>,
) -> Arc<Accounts> {
    let endpoint = Arc::new(Endpoint::new(client.clone()));
    let (configured, prober) = (Arc::clone(configured), Arc::clone(prober));
    Accounts::new(Arc::clone(safe), endpoint, configured as Arc<dyn Exchanger>, prober as Arc<dyn Verifier>)
}

/// Returns the key that seals values for clients and the key that nodes share; both are the same for all processes on
/// the store.
async fn keys(safe: &Safe) -> Result<([u8; 32], Option<[u8; 32]>)> {
    match sealing_key(safe).await {
        Ok(key) => Ok((key.derive("seal"), Some(key.derive("node")))),
        Err(error) => {
            tracing::error!(%error, "what clients bring back is good until a restart: its key does not open");
            Ok((token::random_key()?, None))
        }
    }
}

/// Returns the providers with a token in the config, and the permissions of that account.
pub(crate) fn of_the_file(providers: &[ProviderConfig]) -> BTreeMap<String, Arc<Permissions>> {
    let with_token = providers.iter().filter(|provider| provider.token.is_some());
    with_token.map(|provider| (provider.name.clone(), provider.allowed())).collect()
}

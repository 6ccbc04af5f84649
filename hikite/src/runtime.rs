//! The composition root: builds a running gateway and its upstreams from a checked config, and applies changed
//! configs to it. Upstreams whose definition did not change keep running.

mod server;
mod store_loop;
mod stored;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::join_all;
use hikite_config::{Config, ProviderConfig, ServerConfig, ShareMode};
use hikite_core::catalog::ModuleRule;
use hikite_core::credential::{CredentialProvider, Verifier};
use hikite_core::limits::Limits;
use hikite_core::listing::ListCache;
use hikite_core::origin::ConfigOrigin;
use hikite_core::permission::Permissions;
use hikite_core::registration::{HttpToolBuilder, ToolRegistration};
use hikite_core::search::encoder::Encoder;
use hikite_core::selector::JqRunner;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{Source, ToolHandler};
use hikite_egress::EgressClient;
use hikite_gateway::{
    AccountSettings, AccountStore, AuditSettings, Gateway, GatewayBuilder, GatewayRules, Nodes, RegistryStore,
    Throttle, UnwrittenRecords,
};
use hikite_identity::sealing_key;
use hikite_identity::{Identity, IdentityProviders, People, SecretStore};
use hikite_modules::{Service, ServiceSettings};
use hikite_store::{Store, StoreListCache};
use hikite_upstream::{Environment, ProcessLimits, Spawner, Upstream, UpstreamDefinition};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config_credential::ConfigCredentials;
use crate::fetch::IssuerFetcher;
use crate::jq_process::JqProcesses;
use crate::master_key::MasterKeyLocations;
use crate::program_approval::ProgramApprovals;
use crate::services::Services;
use crate::token_endpoint::HttpTokenEndpoint;
use crate::verify::CredentialProber;
use crate::{search, token, upstream_oauth};
pub(crate) use server::header_map;
use server::{kind_of, module, place, throttle, transport};
use stored::{RuntimeConfigAdmin, StoredConfig};
pub(crate) use stored::{StoredServer, TerminalServers, UPSTREAM};

/// At the end: for what is written down beside the audit.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Runtime {
    pub gateway: Arc<Gateway>,
    pub limits: Arc<Limits>,
    pub store: Store,
    /// Secrets, encrypted in the store.
    pub secret_store: Arc<SecretStore>,
    /// Key that nodes authenticate each other with; `None` if the vault could not be opened.
    node_key: Option<[u8; 32]>,
    lists: Arc<StoreListCache>,
    environment: Environment,
    /// HTTP client for addresses that no administrator configured.
    guarded: EgressClient,
    upstreams: Mutex<HashMap<Arc<str>, RunningUpstream>>,
    /// The active config.
    config: Mutex<Option<Config>>,
    /// Servers and categories configured at runtime, the store revision they were read at, and the lock for changes.
    stored: Mutex<StoredConfig>,
    stored_revision: AtomicI64,
    change_lock: tokio::sync::Mutex<()>,
    /// Programs of the store that may start on this machine.
    approvals: ProgramApprovals,
    /// Builds the HTTP tools of the config; an administrator chose their addresses.
    maker: HttpToolBuilder,
    services: Mutex<Services>,
    /// Accounts defined in the config.
    configured: Arc<ConfigCredentials>,
    prober: Arc<CredentialProber>,
    pub accounts: Arc<AccountStore>,
    /// Modules of the embedding program.
    own: Vec<ModuleRule>,
    /// The built-in sentence encoder; its weights are unpacked on first use.
    encoder: Arc<dyn Encoder>,
    stopping: CancellationToken,
    /// Tasks that drain upstreams removed by a reload, and reports that wait for tool lists.
    pub(crate) tasks: TaskTracker,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// Binaries that the runtime starts; both are hikite itself.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// Guards stdio servers.
    pub(crate) guard: PathBuf,
    /// Runs jq programs; `None` leaves jq out.
    pub(crate) jq: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct RunningUpstream {
    upstream: Upstream,
    /// The upstream as the gateway holds it; the module is unchanged as long as this pointer is.
    source: Arc<dyn Source>,
    server: Arc<ServerConfig>,
    origin: ConfigOrigin,
}

impl RunningUpstream {
    fn is_unchanged(&self, server: &ServerConfig, origin: ConfigOrigin) -> bool {
        self.server.definition_hash == server.definition_hash
            && self.server.share == server.share
            && self.origin == origin
    }
}

impl Runtime {
    /// Starts everything the config names. `program` is the hikite binary, which guards stdio servers and runs jq
    /// programs.
    pub async fn start(config: &Config, program: PathBuf) -> Result<Arc<Self>> {
        let jq_program = Some(program.clone());
        Self::start_with_modules(config, Programs { guard: program, jq: jq_program }, Vec::new()).await
    }

    /// Starts everything the config names, plus the modules of the embedding program.
    pub(crate) async fn start_with_modules(
        config: &Config,
        programs: Programs,
        own: Vec<ModuleRule>,
    ) -> Result<Arc<Self>> {
        if config.store.is_none() {
            token::make_folder(&config.data)?;
        }
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let secret_store = Arc::new(MasterKeyLocations::of(config).secret_store(&store).await?);
        let lists = store.list_cache().await?;
        let limits = Arc::new(config.limits.clone());
        let environment = environment(programs.guard, &limits, &lists)?;
        let guarded = EgressClient::guarded(config.egress.rules());
        let registry = RegistryStore::new(store.clone(), hikite_modules::maker(guarded.clone(), Arc::clone(&limits)));
        let maker = hikite_modules::maker(environment.client.clone(), Arc::clone(&limits));
        let configured = Arc::<ConfigCredentials>::default();
        let prober = Arc::<CredentialProber>::default();
        let accounts = accounts(&secret_store, &environment.client, &configured, &prober);
        let (seal, node_key) = keys(&secret_store).await?;
        let people = people(&store, &secret_store, &environment.client, &guarded).await;
        let jq = programs.jq.map(|program| JqProcesses::new(program, Arc::clone(&limits)));
        let audit = config.audit.rules().map(|rules| AuditSettings { rules, folder: Some(config.data.clone()) });
        let runtime = Arc::new_cyclic(|runtime| Self {
            gateway: GatewayBuilder {
                limits: Arc::clone(&limits),
                seal: HmacSigner::new(seal),
                registry,
                people,
                accounts: Some(Arc::clone(&accounts)),
                jq_runner: jq.map(|jq| Arc::new(jq) as Arc<dyn JqRunner>),
                config_admin: Some(Arc::new(RuntimeConfigAdmin(Weak::clone(runtime)))),
                audit,
            }
            .build(),
            node_key,
            limits,
            store,
            secret_store,
            lists,
            environment,
            guarded,
            upstreams: Mutex::default(),
            config: Mutex::default(),
            stored: Mutex::default(),
            stored_revision: AtomicI64::new(-1),
            change_lock: tokio::sync::Mutex::default(),
            approvals: ProgramApprovals::of(&config.data),
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
        if let Err(error) = runtime.load_and_apply(config).await {
            // A retry must not run beside what this attempt started.
            runtime.stop().await;
            return Err(error);
        }
        runtime.tasks.spawn(Arc::clone(&runtime).follow_store());
        runtime.tasks.spawn(Arc::clone(&runtime).keep_store_tidy());
        Ok(runtime)
    }

    async fn load_and_apply(self: &Arc<Self>, config: &Config) -> Result<()> {
        self.read_stored().await?;
        // Read before any tool is listed: a tool that differs from its pin must not count as new.
        self.gateway.admin().pins.read_store().await?;
        self.apply(config)?;
        self.gateway.admin().store.open().await?;
        Ok(())
    }

    /// Registers this process as a node on the store, and returns the node list and the key that nodes share.
    pub(crate) async fn join(&self, url: &str) -> Result<(Arc<Nodes>, [u8; 32])> {
        let key = self.node_key.context("the nodes cannot authenticate each other because the vault key is wrong")?;
        let process = self.gateway.process();
        Ok((Nodes::join(self.store.clone(), url, process, self.limits.sessions).await?, key))
    }

    /// Applies a config to the running gateway. Upstreams with an unchanged definition keep running.
    pub fn apply(&self, config: &Config) -> Result<()> {
        let stored = self.stored.lock().clone();
        let mut upstreams = self.upstreams.lock();
        let mut next = HashMap::new();
        let mut rules = GatewayRules {
            disabled: config.disabled.clone(),
            categories: stored.merged_categories(config),
            projects: config.projects.clone(),
            default_permissions: config.default_permissions.clone(),
            ..GatewayRules::default()
        };
        let of_file = config.servers.iter().map(|server| (server, ConfigOrigin::File));
        let services = self.services(config);
        let others: Vec<&ModuleRule> = services.iter().chain(&self.own).collect();
        let additional = stored.additional_servers(config, &others);
        for (server, origin) in of_file.chain(additional.iter().map(|server| (*server, ConfigOrigin::Store))) {
            let Some(running) = self.running_upstream(config, server, origin, upstreams.get(&server.name)) else {
                rules.disabled.push(Arc::clone(&server.name));
                continue;
            };
            let source = Arc::clone(&running.source);
            let rule = ModuleRule { origin: running.origin, ..module(&running.server, source) };
            rules.modules.push((rule, throttle(&running.server, &self.limits)));
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
        self.gateway.search().set_settings(search::settings(config, self.client(), &self.encoder)?);
        self.gateway.apply(rules);
        self.guarded.allow(config.egress.rules());
        if let Some(identity_providers) = self.gateway.people().identity_providers() {
            identity_providers.follow(&config.issuers, &config.logins);
        }
        for client in [self.client(), &self.guarded] {
            client.set_min_tls(config.egress.min_tls);
        }
        for (name, running) in before {
            let stays = upstreams.get(&name).is_some_and(|now| Arc::ptr_eq(&now.source, &running.source));
            if !stays {
                let drain = self.limits.drain;
                self.tasks.spawn(async move { running.upstream.close(drain).await });
            }
        }
        let invalid = config.invalid.iter().map(|entry| (entry.id.name.to_string(), format!("{entry}.")));
        self.gateway.admin().status.set_invalid_entries(invalid.collect());
        *self.config.lock() = Some(config.clone());
        Ok(())
    }

    /// Returns the service modules that the config names, and updates the accounts they use.
    fn services(&self, config: &Config) -> Vec<ModuleRule> {
        self.configured.follow(&config.providers);
        self.accounts.follow(AccountSettings {
            providers: hikite_config::providers(&config.providers),
            from_file: from_file(&config.providers),
            public_url: config.server.url(),
            ..AccountSettings::default()
        });
        let settings = ServiceSettings {
            client: self.client().clone(),
            credential_provider: Arc::clone(&self.accounts) as Arc<dyn CredentialProvider>,
            limits: Arc::clone(&self.limits),
            language: config.modules.language,
        };
        let rule = |service: Arc<Service>| ModuleRule {
            description: service.description().to_owned(),
            ..ModuleRule::new(Arc::clone(&service.name), service)
        };
        let mut services = self.services.lock().follow(config, &settings);
        services.retain(|service| !service.provider().is_some_and(|name| config.is_provider_invalid(name)));
        self.prober.follow(&services);
        services.into_iter().map(rule).collect()
    }

    /// Builds the tools that the config registers.
    fn tools(&self, config: &Config) -> Result<Vec<(ToolRegistration, Arc<dyn ToolHandler>)>> {
        config.tools.iter().map(|tool| Ok(hikite_gateway::read_tool(&tool.form, &self.maker)?)).collect()
    }

    /// Ends every upstream, whatever still runs, waits until their processes are gone, and closes the store. Tells what
    /// the audit does not have.
    pub async fn stop(&self) -> UnwrittenRecords {
        self.stopping.cancel();
        let upstreams: Vec<RunningUpstream> = self.upstreams.lock().drain().map(|(_, running)| running).collect();
        join_all(upstreams.iter().map(|running| running.upstream.close(Duration::ZERO))).await;
        self.tasks.close();
        self.tasks.wait().await;
        self.accounts.stop().await;
        // The audit log needs time left if the store does not answer.
        if tokio::time::timeout(FINAL_WRITE_TIMEOUT, self.write_final_state()).await.is_err() {
            tracing::warn!("the store does not respond; the last lists, searches and counts are not saved");
        }
        let unwritten = self.gateway.auditor().stop().await;
        self.store.close().await;
        unwritten
    }

    /// Writes data that may be lost without harm.
    async fn write_final_state(&self) {
        self.lists.flush().await;
        self.gateway.search().stop().await;
        if let Err(error) = self.gateway.admin().store.persist_first_seen().await {
            tracing::warn!(%error, "failed to persist first-seen timestamps");
        }
        if let Err(error) = self.gateway.token_savings().persist_day().await {
            tracing::warn!(%error, "failed to persist the last daily counts");
        }
    }

    /// Returns the HTTP client for configured addresses.
    pub(crate) fn client(&self) -> &EgressClient {
        &self.environment.client
    }

    pub(crate) fn upstream(&self, module: &str) -> Option<Upstream> {
        Some(self.upstreams.lock().get(module)?.upstream.clone())
    }

    /// Returns the upstream with a pending login of this `state`.
    pub(crate) fn upstream_awaiting_login(&self, state: &str) -> Option<(Arc<str>, Upstream)> {
        let upstreams = self.upstreams.lock();
        let found = upstreams.iter().find(|(_, running)| running.upstream.has_pending_login(state));
        found.map(|(name, running)| (Arc::clone(name), running.upstream.clone()))
    }

    pub fn stderr_of(&self, module: &str) -> Vec<String> {
        self.upstreams.lock().get(module).map(|running| running.upstream.stderr()).unwrap_or_default()
    }

    /// Returns the upstream of a server: the one that runs if its definition is the same, else a new one. One that
    /// cannot be started leaves the previous one running, if there is one.
    fn running_upstream(
        &self,
        config: &Config,
        server: &ServerConfig,
        origin: ConfigOrigin,
        before: Option<&RunningUpstream>,
    ) -> Option<RunningUpstream> {
        if let Some(running) = before.filter(|running| running.is_unchanged(server, origin)) {
            return Some(RunningUpstream { server: Arc::new(server.clone()), ..running.clone() });
        }
        match self.start_upstream(config, server, origin) {
            Ok(started) => Some(started),
            Err(error) => {
                let state = if before.is_some() { "keeps its previous definition" } else { "is disabled" };
                tracing::error!("the server `{}` {state}: {error:#}", server.name);
                before.cloned()
            }
        }
    }

    fn start_upstream(&self, config: &Config, server: &ServerConfig, origin: ConfigOrigin) -> Result<RunningUpstream> {
        let definition = UpstreamDefinition {
            name: Arc::clone(&server.name),
            transport: transport(server)?,
            share: match server.share {
                ShareMode::Auto => hikite_upstream::ConnectionSharing::Auto,
                ShareMode::Always => hikite_upstream::ConnectionSharing::Always,
                ShareMode::Never => hikite_upstream::ConnectionSharing::Never,
            },
            access: upstream_oauth::of(config, server, &self.secret_store)?,
            place: place(server),
            hash: server.definition_hash.clone(),
        };
        let listener = self.gateway.catalogs().listener(Arc::clone(&server.name));
        let mut environment = self.environment.clone();
        if origin == ConfigOrigin::Store {
            // No administrator configured this address.
            environment.client = self.guarded.clone();
        }
        let upstream = Upstream::start(definition, environment, listener);
        let source: Arc<dyn Source> = Arc::new(upstream.clone());
        Ok(RunningUpstream { upstream, source, server: Arc::new(server.clone()), origin })
    }
}

/// Builds the accounts that services are called with.
fn accounts(
    secret_store: &Arc<SecretStore>,
    client: &EgressClient,
    configured: &Arc<ConfigCredentials>,
    prober: &Arc<CredentialProber>,
) -> Arc<AccountStore> {
    let endpoint = Arc::new(HttpTokenEndpoint::new(client.clone()));
    let (configured, prober) = (Arc::clone(configured), Arc::clone(prober));
    AccountStore::new(
        Arc::clone(secret_store),
        endpoint,
        configured as Arc<dyn CredentialProvider>,
        prober as Arc<dyn Verifier>,
    )
}

/// Returns the key that seals values for clients and the key that nodes share; both are the same for all processes on
/// the store.
async fn keys(secret_store: &SecretStore) -> Result<([u8; 32], Option<[u8; 32]>)> {
    match sealing_key(secret_store).await {
        Ok(key) => Ok((key.derive("seal"), Some(key.derive("node")))),
        Err(error) => {
            tracing::error!(%error, "state tokens of clients are valid only until a restart because their key cannot be decrypted");
            Ok((token::random_key()?, None))
        }
    }
}

/// Starts the spawner of stdio servers, and builds the client of remote ones.
fn environment(guard: PathBuf, limits: &Arc<Limits>, lists: &Arc<StoreListCache>) -> Result<Environment> {
    let processes = ProcessLimits { running: limits.stdio_processes, starting: limits.starting };
    Ok(Environment {
        spawner: Spawner::start(guard, processes).context("cannot start a thread")?,
        client: EgressClient::new(),
        cache: Arc::clone(lists) as Arc<dyn ListCache>,
        limits: Arc::clone(limits),
    })
}

/// Builds the users, projects and tokens, with the identity providers.
async fn people(
    store: &Store,
    secret_store: &Arc<SecretStore>,
    client: &EgressClient,
    guarded: &EgressClient,
) -> Arc<People> {
    let identity = Arc::new(Identity::new(Arc::clone(secret_store)));
    // A failure must not lock out the holder of the local token, who can repair it.
    if let Err(error) = identity.prepare().await {
        tracing::error!(%error, "nobody can log in because the signing keys of tokens cannot be decrypted");
    }
    let fetcher = IssuerFetcher { client: client.clone(), guarded: guarded.clone() };
    let providers = IdentityProviders::new(store, Arc::new(fetcher));
    Arc::new(People::with_identity(store.clone(), identity, Some(Arc::new(providers))))
}

/// Returns the providers with a token in the config, and the permissions of that account.
pub(crate) fn from_file(providers: &[ProviderConfig]) -> BTreeMap<String, Arc<Permissions>> {
    let with_token = providers.iter().filter(|provider| provider.token.is_some());
    with_token.map(|provider| (provider.name.clone(), provider.allowed())).collect()
}

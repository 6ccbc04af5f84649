//! The composition root: from a checked config to a running gateway with its upstreams, and from a changed
//! config to the same gateway with other ones.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::join_all;
use hikite_core::catalog::ModuleRule;
use hikite_core::limits::Limits;
use hikite_core::seal::Seal;
use hikite_core::secret::Secret;
use hikite_core::source::Source;
use hikite_egress::Client;
use hikite_gateway::{Gateway, Rules, Throttle};
use hikite_upstream::{Definition, Environment, FileListCache, Spawner, Upstream};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use crate::config::{Config, ServerConfig, Share, Transport};
use crate::token;

#[derive(Debug)]
pub struct House {
    pub gateway: Arc<Gateway>,
    pub limits: Arc<Limits>,
    environment: Environment,
    upstreams: Mutex<HashMap<Arc<str>, Running>>,
    /// Upstreams that a reload took away and that still finish their calls, and reports that wait for lists.
    pub(crate) tasks: TaskTracker,
}

#[derive(Clone, Debug)]
struct Running {
    upstream: Upstream,
    hash: String,
    share: Share,
}

impl House {
    /// Starts everything the config names. `program` is the hikite binary, which guards the servers it starts.
    pub fn start(config: &Config, program: PathBuf) -> Result<Arc<Self>> {
        token::make_folder(&config.data)?;
        let limits = Arc::new(config.limits.clone());
        let environment = Environment {
            spawner: Spawner::start(program, limits.stdio_processes).context("cannot start a thread")?,
            client: Client::new(),
            cache: Arc::new(FileListCache::new(config.data.join("lists"))),
            limits: Arc::clone(&limits),
        };
        let house = Arc::new(Self {
            gateway: Gateway::new(Arc::clone(&limits), Seal::new(token::random_key()?)),
            limits,
            environment,
            upstreams: Mutex::default(),
            tasks: TaskTracker::new(),
        });
        house.apply(config)?;
        Ok(house)
    }

    /// Makes the running house follow the config. Upstreams whose definition is the same go on undisturbed.
    pub fn apply(&self, config: &Config) -> Result<()> {
        let mut upstreams = self.upstreams.lock();
        let mut next = HashMap::new();
        let mut rules = Rules { categories: config.categories.clone(), ..Rules::default() };
        for server in &config.servers {
            let running = match upstreams.get(&server.name) {
                Some(running) if running.hash == server.definition_hash && running.share == server.share => {
                    running.clone()
                }
                _ => self.start_upstream(server)?,
            };
            let source: Arc<dyn Source> = Arc::new(running.upstream.clone());
            rules.modules.push((module(server, source), throttle(server, &self.limits)));
            next.insert(Arc::clone(&server.name), running);
        }
        let before = std::mem::replace(&mut *upstreams, next);
        self.gateway.apply(rules);
        for (name, running) in before {
            let stays = upstreams
                .get(&name)
                .is_some_and(|now| now.hash == running.hash && now.share == running.share);
            if !stays {
                let drain = self.limits.drain;
                self.tasks.spawn(async move { running.upstream.close(drain).await });
            }
        }
        Ok(())
    }

    /// Ends every upstream, whatever still runs, and waits until their processes are gone.
    pub async fn stop(&self) {
        let upstreams: Vec<Running> = self.upstreams.lock().drain().map(|(_, running)| running).collect();
        join_all(upstreams.iter().map(|running| running.upstream.close(Duration::ZERO))).await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The one HTTP client, for whatever else is sent from here.
    pub(crate) fn client(&self) -> &Client {
        &self.environment.client
    }

    pub fn stderr_of(&self, module: &str) -> Vec<String> {
        self.upstreams.lock().get(module).map(|running| running.upstream.stderr()).unwrap_or_default()
    }

    fn start_upstream(&self, server: &ServerConfig) -> Result<Running> {
        let definition = Definition {
            name: Arc::clone(&server.name),
            transport: transport(server)?,
            share: match server.share {
                Share::Auto => hikite_upstream::Share::Auto,
                Share::Always => hikite_upstream::Share::Always,
                Share::Never => hikite_upstream::Share::Never,
            },
            hash: server.definition_hash.clone(),
        };
        let upstream = Upstream::start(definition, self.environment.clone(), self.gateway.listener());
        Ok(Running { upstream, hash: server.definition_hash.clone(), share: server.share })
    }
}

fn module(server: &ServerConfig, source: Arc<dyn Source>) -> ModuleRule {
    ModuleRule {
        name: Arc::clone(&server.name),
        description: server.description.clone(),
        selection: Arc::new(server.selection.clone()),
        source,
        about: Arc::default(),
    }
}

fn throttle(server: &ServerConfig, limits: &Limits) -> Throttle {
    Throttle {
        concurrency: server.concurrency.unwrap_or(limits.module_concurrency),
        queue: limits.module_queue,
        rate: server.rate,
        timeout: server.call_timeout.unwrap_or(limits.call_timeout),
    }
}

fn transport(server: &ServerConfig) -> Result<hikite_upstream::Transport> {
    use hikite_upstream::Transport as Checked;
    let address = |url: &Secret, headers: &[(String, Secret)]| -> Result<_> {
        let parsed = url
            .expose()
            .parse()
            .with_context(|| format!("`mcpServers.{}.url` is no address", server.name))?;
        Ok((parsed, header_map(headers).with_context(|| format!("`mcpServers.{}.headers`", server.name))?))
    };
    Ok(match &server.transport {
        Transport::Stdio { command, args, env, cwd, inherit_env } => Checked::Stdio {
            command: command.clone(),
            args: args.iter().map(|argument| argument.expose().to_owned()).collect(),
            env: env.clone(),
            cwd: cwd.clone(),
            inherit_env: *inherit_env,
        },
        Transport::Http { url, headers } => {
            let (url, headers) = address(url, headers)?;
            Checked::Http { url, headers }
        }
        Transport::Sse { url, headers } => {
            let (url, headers) = address(url, headers)?;
            Checked::Sse { url, headers }
        }
    })
}

pub(crate) fn header_map(headers: &[(String, Secret)]) -> Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name).with_context(|| format!("`{name}` is no header name"))?;
        let mut value = HeaderValue::from_str(value.expose())
            .with_context(|| format!("the value of `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        map.append(name, value);
    }
    Ok(map)
}

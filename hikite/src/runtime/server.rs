//! Converts a server of the config into a module with its limits and a transport.

use std::sync::Arc;

use anyhow::{Context, Result};
use hikite_config::{ServerConfig, TransportConfig};
use hikite_core::catalog::ModuleRule;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::secret::Secret;
use hikite_core::source::Source;
use hikite_gateway::Throttle;
use http::header::{HeaderMap, HeaderName, HeaderValue};

pub(super) fn module(server: &ServerConfig, source: Arc<dyn Source>) -> ModuleRule {
    ModuleRule {
        description: server.description.clone(),
        selection: Arc::new(server.selection.clone()),
        policy: server.policy,
        resources: server.resources,
        pins: server.pins,
        ..ModuleRule::new(Arc::clone(&server.name), source)
    }
}

pub(super) fn kind_of(server: &ServerConfig) -> &'static str {
    match server.transport {
        TransportConfig::Stdio { .. } => "stdio",
        TransportConfig::Http { .. } => "http",
        TransportConfig::Sse { .. } => "sse",
    }
}

/// Returns the address or command line, with secrets masked.
pub(super) fn place(server: &ServerConfig) -> Object {
    match &server.transport {
        TransportConfig::Stdio { command, args, .. } => {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            Object::default().with("command", command.as_str()).with("args", Raw::of(&args))
        }
        TransportConfig::Http { url, .. } | TransportConfig::Sse { url, .. } => {
            Object::default().with("url", url.to_string())
        }
    }
}

pub(super) fn throttle(server: &ServerConfig, limits: &Limits) -> Throttle {
    Throttle {
        concurrency: server.concurrency.unwrap_or(limits.module_concurrency),
        queue: limits.module_queue,
        rate: server.rate,
        timeout: server.call_timeout.unwrap_or(limits.call_timeout),
    }
}

pub(super) fn transport(server: &ServerConfig) -> Result<hikite_upstream::UpstreamTransport> {
    use hikite_upstream::UpstreamTransport as Checked;
    let address = |url: &Secret, headers: &[(String, Secret)]| -> Result<_> {
        let parsed =
            url.expose().parse().with_context(|| format!("`mcpServers.{}.url` is not a valid address", server.name))?;
        Ok((parsed, header_map(headers).with_context(|| format!("`mcpServers.{}.headers`", server.name))?))
    };
    Ok(match &server.transport {
        TransportConfig::Stdio { command, args, env, cwd, inherit_env } => Checked::Stdio {
            command: command.clone(),
            args: args.iter().map(|argument| argument.expose().to_owned()).collect(),
            env: env.clone(),
            cwd: cwd.clone(),
            inherit_env: *inherit_env,
        },
        TransportConfig::Http { url, headers } => {
            let (url, headers) = address(url, headers)?;
            Checked::Http { url, headers }
        }
        TransportConfig::Sse { url, headers } => {
            let (url, headers) = address(url, headers)?;
            Checked::Sse { url, headers }
        }
    })
}

pub(crate) fn header_map(headers: &[(String, Secret)]) -> Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name).with_context(|| format!("`{name}` is not a valid header name"))?;
        let mut value = HeaderValue::from_str(value.expose())
            .with_context(|| format!("the value of `{name}` cannot be sent in a header"))?;
        value.set_sensitive(true);
        map.append(name, value);
    }
    Ok(map)
}

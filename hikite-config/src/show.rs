//! Shows the effective config in the format of the file, with defaults. Every secret is `***`; arguments and URLs,
//! which may contain one, are shown as written, before variables are expanded.

use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::pattern::Pattern;
use hikite_core::rate::Rate;
use hikite_core::tool_selection::{Override, PresetArgument, Selection, ToolRef};
use serde_json::{Map, Value, json};

use super::unit::{show_size, show_span};
use super::{audit, auth, issuer, policy, provider, vault};
use hikite_core::secret::{MASK, Secret};
use hikite_gateway::Surface;
use hikite_modules::TextLanguage;

use super::access::AccessConfig;
use super::catalog::CatalogLocation;
use super::search::{SearchModel, SearchSection, SearchServiceConfig};
use super::{
    Config, Cors, ModulesSection, OtlpSection, ProviderConfig, ServerConfig, ShareMode, TelemetrySection, TlsSection,
    TokenLocation, TransportConfig, rate,
};

pub fn show(config: &Config) -> Value {
    let server = &config.server;
    let surfaces: Vec<&str> = server.surfaces.iter().copied().map(Surface::name).collect();
    let servers: Map<String, Value> = config.servers.iter().map(|s| (s.name.to_string(), show_server(s))).collect();
    let categories: Map<String, Value> =
        config.categories.iter().map(|rule| (rule.name.to_string(), show_category(rule))).collect();
    let tools: Map<String, Value> = config.tools.iter().map(|tool| (tool.name(), tool.shown.clone())).collect();
    let projects: Map<String, Value> =
        config.projects.iter().map(|project| (project.name.to_string(), project.form().raw().value())).collect();
    json!({
        "server": {
            "listen": server.listen.to_string(),
            "public_url": server.public_url,
            "node_url": server.node_url,
            "tls": server.tls.as_ref().map(show_tls),
            "trusted_proxies": server.trusted_proxies,
            "surface": surfaces,
            "short_names": server.short_names,
            "allowed_hosts": server.allowed_hosts,
            "allowed_origins": server.allowed_origins,
            "cors": show_cors(&server.cors),
            "rate_limit": server.rate.map(rate::show),
        },
        "mcpServers": servers,
        "categories": categories,
        "tools": tools,
        "projects": projects,
        "modules": show_modules(&config.modules),
        "providers": config.providers.iter().map(show_provider).collect::<Map<_, _>>(),
        "pins": config.pins.word(),
        "catalog": match &config.catalog {
            CatalogLocation::Url(url) => json!({ "url": url }),
            CatalogLocation::File(file) => json!({ "file": file }),
        },
        "egress": { "allow": config.egress.allow, "min_tls": config.egress.min_tls.word() },
        "audit": audit::show(&config.audit),
        "auth": show_auth(config),
        "store": {
            "url": config.store_url().to_string(), "max_staleness": show_span(config.limits.max_staleness),
        },
        "vault": vault::show(&config.vault),
        "search": show_search(&config.search),
        "limits": show_limits(&config.limits),
        "telemetry": show_telemetry(&config.telemetry),
        "data": config.data,
    })
}

fn show_modules(modules: &ModulesSection) -> Value {
    let language = TextLanguage::ALL.iter().find(|(_, language)| *language == modules.language);
    let mut shown = Map::new();
    shown.insert("builtin".into(), json!(modules.builtin));
    shown.extend(modules.dir.as_ref().map(|dir| ("dir".to_owned(), json!(dir))));
    shown.extend(language.map(|(word, _)| ("language".to_owned(), json!(word))));
    shown.into()
}

fn show_provider(provider: &ProviderConfig) -> (String, Value) {
    let mut shown = Map::new();
    match &provider.token {
        Some(TokenLocation::Inline(_)) => drop(shown.insert("token".into(), MASK.into())),
        Some(TokenLocation::File(file)) => drop(shown.insert("token_file".into(), json!(file))),
        None => {}
    }
    shown.extend(provider.oauth.as_ref().map(|oauth| ("oauth".to_owned(), provider::show_oauth(oauth))));
    let texts = [("email", &provider.email), ("api", &provider.api)];
    shown.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?)))));
    shown.extend(provider.details.iter().map(|(key, text)| (key.clone(), json!(text))));
    shown.extend(provider.permissions.as_ref().map(|form| ("permissions".to_owned(), form.clone())));
    (provider.name.clone(), shown.into())
}

fn show_auth(config: &Config) -> Value {
    let mut shown = auth::show(&config.auth, config.oauth.as_ref());
    if let Some(members) = shown.as_object_mut() {
        members.extend(issuer::show(&config.issuers, &config.logins));
        let default = config.default_permissions.as_ref().map(|default| default.form().value());
        members.extend(default.map(|default| ("default_permissions".to_owned(), default)));
    }
    shown
}

fn show_tls(tls: &TlsSection) -> Value {
    json!({ "cert_file": tls.cert_file, "key_file": tls.key_file, "min_version": tls.min.word() })
}

fn show_cors(cors: &Cors) -> Value {
    match cors {
        Cors::Off => json!({ "enabled": false }),
        Cors::Any => json!({ "enabled": true, "origin": "*" }),
        Cors::Only(origins) => json!({ "enabled": true, "origin": origins }),
    }
}

fn show_telemetry(telemetry: &TelemetrySection) -> Value {
    let mut shown = Map::new();
    let (level, format) = (telemetry.log.level.as_deref(), telemetry.log.format.unwrap_or_default());
    shown.insert("log".into(), json!({ "level": level.unwrap_or("info"), "format": format.word() }));
    shown.extend(telemetry.otlp.as_ref().map(|otlp| ("otlp".to_owned(), show_otlp(otlp))));
    shown.extend(telemetry.metrics_token.as_ref().map(|_| ("metrics".to_owned(), json!({ "token": MASK }))));
    shown.into()
}

/// Shows the OTLP settings, including endpoints from the environment.
fn show_otlp(otlp: &OtlpSection) -> Value {
    let address = |url: &Option<Secret>| url.as_ref().map(ToString::to_string);
    json!({
        "traces": address(&otlp.traces),
        "metrics": address(&otlp.metrics),
        "headers": pairs(&otlp.headers),
        "service": otlp.service,
        "sample": otlp.sampler.ratio,
        "interval": show_span(otlp.interval),
        "timeout": show_span(otlp.timeout),
    })
}

fn show_search(search: &SearchSection) -> Value {
    let mut shown = Map::new();
    shown.insert("provider".into(), search.provider.word().into());
    shown.extend(search.cloud.as_ref().map(|place| ("cloud".to_owned(), show_place(place, "token").into())));
    let model = |(place, model): &(SearchServiceConfig, SearchModel), count: &str| -> Value {
        let mut shown = show_place(place, "key");
        shown.insert("model".into(), model.name.as_str().into());
        shown.extend(model.count.map(|number| (count.to_owned(), number.into())));
        shown.into()
    };
    let embedding = search.embedding.as_ref().map(|embedding| model(embedding, "dimensions"));
    shown.extend(embedding.map(|shown| ("embedding".to_owned(), shown)));
    let rerank = search.rerank.as_ref().map(|rerank| model(rerank, "top"));
    shown.extend(rerank.map(|shown| ("rerank".to_owned(), shown)));
    let memory = search.memory;
    let memory = json!({
        "enabled": memory.enabled,
        "text": memory.text,
        "half_life": show_span(memory.half_life),
        "pairs": memory.pairs,
    });
    shown.insert("memory".into(), memory);
    shown.into()
}

/// Shows an endpoint as in the file, without the appended path.
fn show_place(place: &SearchServiceConfig, credential: &str) -> Map<String, Value> {
    let url = place.url.to_string();
    let base = ["/catalog/search", "/embeddings", "/rerank"].iter().find_map(|call| url.strip_suffix(call));
    let mut shown = Map::new();
    shown.insert("url".into(), base.unwrap_or(&url).into());
    shown.extend(place.token.as_ref().map(|_| (credential.to_owned(), MASK.into())));
    shown.insert("timeout".into(), show_span(place.timeout).into());
    shown
}

fn pairs(pairs: &[(String, Secret)]) -> Map<String, Value> {
    pairs.iter().map(|(name, secret)| (name.clone(), secret.to_string().into())).collect()
}

fn show_server(server: &ServerConfig) -> Value {
    let mut shown = Map::new();
    let mut set = |key: &str, value: Value| shown.insert(key.to_owned(), value);
    set("description", server.description.as_str().into());
    match &server.transport {
        TransportConfig::Stdio { command, args, env, cwd, inherit_env } => {
            set("type", "stdio".into());
            set("command", command.as_str().into());
            set("args", args.iter().map(ToString::to_string).collect());
            set("env", pairs(env).into());
            cwd.as_ref().map(|cwd| set("cwd", json!(cwd)));
            set("inheritEnv", (*inherit_env).into());
        }
        TransportConfig::Http { url, headers } | TransportConfig::Sse { url, headers } => {
            let sse = matches!(server.transport, TransportConfig::Sse { .. });
            set("type", if sse { "sse" } else { "http" }.into());
            set("url", url.to_string().into());
            set("headers", pairs(headers).into());
        }
    }
    let access = server.access.as_ref().filter(|access| **access != AccessConfig::default());
    access.map(|access| set("auth", access.show()));
    set("share", share(server.share).into());
    set("pins", server.pins.word().into());
    server.call_timeout.map(|timeout| set("timeout", show_span(timeout).into()));
    server.concurrency.map(|count| set("concurrency", count.into()));
    server.rate.map(|rate| set("rate", show_rate(rate).into()));
    policy::show(&server.policy).into_iter().for_each(|(key, value)| drop(set(&key, value)));
    server.resources.cache.map(|cache| set("cacheResources", show_span(cache).into()));
    let tools = show_selection(&server.selection);
    (!tools.is_empty()).then(|| set("tools", tools.into()));
    shown.into()
}

fn share(share: ShareMode) -> &'static str {
    match share {
        ShareMode::Auto => "auto",
        ShareMode::Always => "always",
        ShareMode::Never => "never",
    }
}

fn show_rate(rate: Rate) -> String {
    let unit = match rate.per.as_secs() {
        0..=1 => "s",
        2..=60 => "m",
        _ => "h",
    };
    format!("{}/{unit}", rate.count)
}

fn show_category(rule: &CategoryRule) -> Value {
    let mut shown = Map::new();
    shown.insert("description".into(), rule.description.as_str().into());
    shown.insert("server".into(), rule.servers.iter().map(ToString::to_string).collect());
    shown.insert("tools".into(), show_selection(&rule.selection).into());
    shown.extend(rule.skill.as_deref().map(|skill| ("skill".to_owned(), skill.into())));
    shown.into()
}

fn show_selection(selection: &Selection) -> Map<String, Value> {
    let names = |names: &[ToolRef]| -> Value { names.iter().map(tool_name).collect() };
    let patterns = |patterns: &[Pattern]| -> Value { patterns.iter().map(Pattern::to_string).collect() };
    let overrides: Map<String, Value> =
        selection.overrides.iter().map(|(name, change)| (tool_name(name), show_override(change))).collect();
    let members = [
        ("includeNames", names(&selection.include_names)),
        ("includePatterns", patterns(&selection.include_patterns)),
        ("excludeNames", names(&selection.exclude_names)),
        ("excludePatterns", patterns(&selection.exclude_patterns)),
        ("overrides", overrides.into()),
    ];
    let is_empty = |value: &Value| *value == json!([]) || *value == json!({});
    members.into_iter().filter(|(_, value)| !is_empty(value)).map(|(key, value)| (key.to_owned(), value)).collect()
}

fn tool_name(name: &ToolRef) -> String {
    name.server.as_ref().map_or_else(|| name.tool.to_string(), |server| format!("{server}:{}", name.tool))
}

fn show_override(change: &Override) -> Value {
    let mut shown = Map::new();
    shown.insert("enabled".into(), change.enabled.into());
    shown.extend(change.name.as_deref().map(|name| ("name".to_owned(), name.into())));
    shown.extend(change.description.as_deref().map(|text| ("description".to_owned(), text.into())));
    shown.extend(policy::show(&change.policy));
    let arguments: Map<String, Value> =
        change.arguments.iter().map(|argument| (argument.name.clone(), show_argument(argument))).collect();
    shown.extend((!arguments.is_empty()).then(|| ("arguments".to_owned(), arguments.into())));
    shown.into()
}

/// Shows an argument; a hidden default is masked, because it may be a key.
fn show_argument(argument: &PresetArgument) -> Value {
    let mut shown = Map::new();
    let default = argument.default.as_ref().map(|raw| if argument.hidden { MASK.into() } else { raw.value() });
    shown.extend(default.map(|default| ("default".to_owned(), default)));
    shown.insert("hidden".into(), argument.hidden.into());
    shown.extend(argument.description.as_deref().map(|text| ("description".to_owned(), text.into())));
    shown.into()
}

fn show_limits(limits: &Limits) -> Value {
    let count = |count: usize| Value::from(count);
    let size = |bytes| Value::from(show_size(bytes));
    let span = |time| Value::from(show_span(time));
    let shown = [
        ("body_bytes", size(limits.body_bytes)),
        ("answer_bytes", size(limits.answer_bytes)),
        ("line_bytes", limits.line_bytes.map_or(Value::Null, size)),
        ("connections", count(limits.connections)),
        ("caller_share", count(limits.caller_share)),
        ("failed_logins", limits.failed_logins.into()),
        ("sessions", count(limits.sessions)),
        ("streams", count(limits.streams)),
        ("unused_clients", count(limits.unused_clients)),
        ("outbox_messages", count(limits.outbox_messages)),
        ("questions", count(limits.questions)),
        ("suspended_calls", count(limits.suspended_calls)),
        ("module_concurrency", count(limits.module_concurrency)),
        ("module_queue", count(limits.module_queue)),
        ("retry_attempts", limits.retry_attempts.into()),
        ("breaker_failures", limits.breaker_failures.into()),
        ("cache_bytes", size(limits.cache_bytes)),
        ("cache_entry_bytes", size(limits.cache_entry_bytes)),
        ("audit_queue", count(limits.audit_queue)),
        ("stdio_processes", count(limits.stdio_processes)),
        ("starting", count(limits.starting)),
        ("stderr_lines", count(limits.stderr_lines)),
        ("list_page", count(limits.list_page)),
        ("list_bytes", size(limits.list_bytes)),
        ("list_pages", count(limits.list_pages)),
        ("own_lists", count(limits.own_lists)),
        ("menu_tokens", count(limits.menu_tokens)),
        ("batches", count(limits.batches)),
        ("batch_tasks", count(limits.batch_tasks)),
        ("batch_concurrency", count(limits.batch_concurrency)),
        ("compact_bytes", size(limits.compact_bytes)),
        ("results", count(limits.results)),
        ("result_bytes", size(limits.result_bytes)),
        ("view_bytes", size(limits.view_bytes)),
        ("jq_processes", count(limits.jq_processes)),
        ("jq_bytes", size(limits.jq_bytes)),
        ("header_timeout", span(limits.header_timeout)),
        ("body_timeout", span(limits.body_timeout)),
        ("idle_timeout", span(limits.idle_timeout)),
        ("session_idle", span(limits.session_idle)),
        ("call_timeout", span(limits.call_timeout)),
        ("call_timeout_max", span(limits.call_timeout_max)),
        ("breaker_pause", span(limits.breaker_pause)),
        ("breaker_pause_max", span(limits.breaker_pause_max)),
        ("question_timeout", span(limits.question_timeout)),
        ("resume", span(limits.resume)),
        ("start_timeout", span(limits.start_timeout)),
        ("first_list", span(limits.first_list)),
        ("all_lists", span(limits.all_lists)),
        ("list_ttl", span(limits.list_ttl)),
        ("idle_stop", span(limits.idle_stop)),
        ("result_age", span(limits.result_age)),
        ("jq_timeout", span(limits.jq_timeout)),
        ("leave", span(limits.leave)),
        ("drain", span(limits.drain)),
    ];
    shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

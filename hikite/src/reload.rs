//! Watches the config file. A valid change takes effect at once and as a whole; an invalid one is logged and changes
//! nothing. An invalid server or provider keeps its previous definition, and the rest of the file takes effect.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hikite_config::Config;
use hikite_server::App;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::instance::{ConfigOverrides, settings};
use crate::runtime::Runtime;
use crate::{exposure, log, report, services};

const KEPT: &str = "the changed config is invalid; the previous one stays active:";
/// Interval between checks of the file.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// State of the config file when it was read. It is taken before start-up, so that later changes are detected.
pub(crate) struct ConfigFileState(FileStamp);

impl ConfigFileState {
    pub(crate) fn of(config: &Config) -> Self {
        Self(config.file.as_deref().and_then(stamp))
    }
}

pub(crate) async fn follow(
    (mut config, ConfigFileState(mut last_stamp), reload_requested): (Config, ConfigFileState, Arc<Notify>),
    overrides: ConfigOverrides,
    runtime: Arc<Runtime>,
    app: Arc<App>,
    stopping: CancellationToken,
) {
    let Some(file) = config.file.clone() else {
        return follow_signals(&config, &reload_requested, (&runtime, &app), &stopping).await;
    };
    let mut modules = files(&config);
    let mut certificate = certificate_files(&config);
    while let Some(is_requested) = stopping.run_until_cancelled(wait_for_check(&reload_requested)).await {
        let now = stamp(&file);
        let module_files = files(&config);
        if module_files != modules {
            // A half-written file is invalid; the previous version stays until it is complete.
            modules = module_files;
            if apply(&config, &runtime, &app) {
                report::log_when_listed(&runtime, &stopping);
            }
        }
        let certificate_now = certificate_files(&config);
        if certificate_now != certificate {
            // Certificate and key are rarely written at once; the second write triggers another reload.
            certificate = certificate_now;
            reload_certificate(&config, &app);
        }
        if is_requested {
            tracing::info!("SIGHUP: reloading the config");
        } else if now == last_stamp {
            continue;
        } else {
            // An editor may still be writing; the file is read once it stops changing.
            tokio::time::sleep(POLL_INTERVAL / 3).await;
            if stamp(&file) != now || stopping.is_cancelled() {
                continue;
            }
        }
        last_stamp = now;
        match read(&file, &overrides, &config) {
            Ok(next) => {
                if apply(&next, &runtime, &app) {
                    report::log_when_listed(&runtime, &stopping);
                    config = next;
                    modules = files(&config);
                    certificate = certificate_files(&config);
                }
            }
            Err(error) => {
                runtime.gateway.admin().status.set_config_error(Some(format!("{error:#}")));
                tracing::error!("{KEPT}\n{error:#}");
            }
        }
    }
}

/// Waits for the next check; returns `true` if SIGHUP requested a reload.
async fn wait_for_check(reload_requested: &Notify) -> bool {
    tokio::select! {
        biased;
        () = reload_requested.notified() => true,
        () = tokio::time::sleep(POLL_INTERVAL) => false,
    }
}

/// Reloads module files and certificates on SIGHUP where there is no config file.
async fn follow_signals(
    config: &Config,
    reload_requested: &Notify,
    (runtime, app): (&Arc<Runtime>, &App),
    stopping: &CancellationToken,
) {
    while stopping.run_until_cancelled(reload_requested.notified()).await.is_some() {
        tracing::info!("SIGHUP: there is no config file to reload");
        if apply(config, runtime, app) {
            report::log_when_listed(runtime, stopping);
        }
    }
}

/// Reads the changed config, with settings that need a restart left unchanged. The exposure check applies to the
/// result.
fn read(file: &Path, overrides: &ConfigOverrides, before: &Config) -> anyhow::Result<Config> {
    let mut config = overrides.apply(Config::load(Some(file), &|name| std::env::var(name).ok())?);
    config.keep_previous(before);
    let wanted = (config.server.listen, &config.limits, &config.data);
    if overrides.listen.is_none() && wanted.0 != before.server.listen
        || (wanted.1, wanted.2) != (&before.limits, &before.data)
        || config.store != before.store
    {
        tracing::warn!("`server.listen`, `limits`, `data` and `store` take effect after a restart");
    }
    if config.server.node_url != before.server.node_url {
        tracing::warn!("`server.node_url` takes effect after a restart");
    }
    if config.audit != before.audit {
        tracing::warn!("`audit` takes effect after a restart");
    }
    if config.telemetry.otlp != before.telemetry.otlp {
        tracing::warn!("`telemetry.otlp` takes effect after a restart");
    }
    config.server.listen = before.server.listen;
    config.server.node_url.clone_from(&before.server.node_url);
    config.limits = before.limits.clone();
    config.data.clone_from(&before.data);
    config.store.clone_from(&before.store);
    config.audit = before.audit;
    config.telemetry.otlp.clone_from(&before.telemetry.otlp);
    if !overrides.stdio {
        exposure::check(&config)?;
    }
    Ok(config)
}

/// Applies the config, and returns `true` if it is in force.
fn apply(next: &Config, runtime: &Runtime, app: &App) -> bool {
    for entry in &next.invalid {
        tracing::error!("{entry}");
    }
    for warning in &next.warnings {
        tracing::warn!("{warning}");
    }
    match settings(next).and_then(|settings| runtime.apply(next).map(|()| settings)) {
        Ok(settings) => {
            app.configure(settings);
            runtime.gateway.admin().status.set_config_error(None);
            tracing::info!(file = %shown(next), "the changed config is active");
            log::follow(&next.telemetry.log);
            true
        }
        Err(error) => {
            runtime.gateway.admin().status.set_config_error(Some(format!("{error:#}")));
            tracing::error!("{KEPT}\n{error:#}");
            false
        }
    }
}

/// Loads the changed certificate for new connections.
fn reload_certificate(config: &Config, app: &App) {
    match settings(config) {
        Ok(settings) => {
            app.configure(settings);
            tracing::info!("the changed certificate is active");
        }
        Err(error) => {
            tracing::error!("the changed certificate is invalid; the previous one stays active:\n{error:#}");
        }
    }
}

/// Returns the state of the certificate and key files, for change detection.
fn certificate_files(config: &Config) -> Option<[FileStamp; 2]> {
    let tls = config.server.tls.as_ref()?;
    Some([stamp(&tls.cert_file), stamp(&tls.key_file)])
}

/// Returns the state of the module files, for change detection.
fn files(config: &Config) -> Vec<(PathBuf, Option<SystemTime>, u64)> {
    config.modules.dir.as_deref().map(services::stamp).unwrap_or_default()
}

fn shown(config: &Config) -> String {
    config.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default()
}

type FileStamp = Option<(SystemTime, u64, PathBuf)>;

/// Returns the modification time, size and real path, so that a retargeted symlink counts as a change.
fn stamp(file: &Path) -> FileStamp {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), std::fs::canonicalize(file).ok()?))
}

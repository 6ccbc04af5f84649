//! A stdio server process: started through the guard in its own process group, monitored, ended and reaped.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::secret::Secret;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::files;
use crate::spawner::Spawner;

/// Time for a server to exit after its stdin is closed.
const CLOSE_GRACE: Duration = Duration::from_millis(300);
/// Time for the guard to end the server, including its own grace period.
const GUARD_GRACE: Duration = Duration::from_secs(7);

/// Variables that programs need to run. All others come from the definition's `env`.
const INHERITED_VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "JAVA_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    // The guard is a process of ours and disables core dumps unless this is set.
    "HIKITE_DUMPABLE",
];
/// Prefixes of such variables: locale, directories, certificates, and package managers that start servers.
const INHERITED_PREFIXES: &[&str] = &[
    "LC_",
    "XDG_",
    "SSL_CERT_",
    "NPM_CONFIG_",
    "npm_config_",
    "NODE_EXTRA_CA_",
    "UV_",
    "PIP_",
    "NVM_",
    "PYENV_",
    "CARGO_HOME",
    "RUSTUP_HOME",
];

#[derive(Debug)]
pub(crate) struct ProcessPipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A running process. Cancelling `stop` ends it; `ended` is cancelled once it is reaped.
#[derive(Clone, Debug)]
pub(crate) struct ServerProcess {
    pub(crate) stop: CancellationToken,
    pub(crate) ended: CancellationToken,
    status: Arc<parking_lot::Mutex<Option<ExitStatus>>>,
}

pub(crate) struct ProcessLaunch<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a [(String, Secret)],
    pub(crate) cwd: Option<&'a std::path::Path>,
    pub(crate) inherit_env: bool,
    /// Process slot, held while it runs.
    pub(crate) process_slot: OwnedSemaphorePermit,
}

impl ServerProcess {
    pub(crate) async fn start(
        launch: ProcessLaunch<'_>,
        spawner: &Spawner,
        tasks: &TaskTracker,
    ) -> io::Result<(Self, ProcessPipes)> {
        let mut child = spawner.spawn(command(&launch, spawner)).await?;
        let missing = || io::Error::other("a pipe is missing");
        let pipes = ProcessPipes {
            stdin: child.stdin.take().ok_or_else(missing)?,
            stdout: child.stdout.take().ok_or_else(missing)?,
            stderr: child.stderr.take().ok_or_else(missing)?,
        };
        let process = Self { stop: CancellationToken::new(), ended: CancellationToken::new(), status: Arc::default() };
        let (watched, process_slot) = (process.clone(), launch.process_slot);
        tasks.spawn(async move {
            watched.watch(child).await;
            drop(process_slot);
        });
        Ok((process, pipes))
    }

    /// Describes how the process ended.
    pub(crate) fn exit_description(&self) -> String {
        match *self.status.lock() {
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("its process exited with code {code}"),
                (None, Some(signal)) => format!("its process was killed by signal {signal}"),
                (None, None) => "its process exited".into(),
            },
            None => "its process closed the connection".into(),
        }
    }

    /// Returns `true` if the program could not be executed: the guard exits with 126 or 127, as shells do.
    pub(crate) fn never_ran(&self) -> bool {
        self.status.lock().and_then(|status| status.code()).is_some_and(|code| matches!(code, 126 | 127))
    }

    async fn watch(self, mut child: Child) {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let status = tokio::select! {
            status = child.wait() => status,
            () = self.stop.cancelled() => end(&mut child, group).await,
        };
        // If the guard itself was killed, its group may still be running.
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        *self.status.lock() = status.ok();
        self.ended.cancel();
    }
}

async fn end(child: &mut Child, guard: Option<Pid>) -> io::Result<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(CLOSE_GRACE, child.wait()).await {
        return status;
    }
    if let Some(guard) = guard {
        let _ = rustix::process::kill_process(guard, Signal::TERM);
    }
    match tokio::time::timeout(GUARD_GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            child.start_kill()?;
            child.wait().await
        }
    }
}

/// Returns our process id and the limit of open files for the server.
fn parent() -> String {
    let id = std::process::id();
    files::original_soft_limit().map_or_else(|| id.to_string(), |files| format!("{id}:{files}"))
}

fn command(launch: &ProcessLaunch<'_>, spawner: &Spawner) -> Command {
    let mut command = Command::new(spawner.guard());
    command.arg("__guard").arg(parent()).arg("--").arg(launch.command).args(launch.args);
    if !launch.inherit_env {
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)));
    }
    command.envs(launch.env.iter().map(|(name, value)| (name, value.expose())));
    if let Some(cwd) = launch.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    command
}

fn is_inherited(name: &str) -> bool {
    INHERITED_VARIABLES.contains(&name) || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

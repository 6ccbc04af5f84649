//! A private PostgreSQL on a loopback port, from the installed programs, and a proxy that can stop forwarding. Both end
//! with the program that started them, even if that is killed.

use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::process::free_address;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the server, and stops it when its stdin is closed.
const GUARD: &str = r#"
cd "$2" || exit 1
"$1/initdb" --pgdata=data --username=hikite --auth=trust --encoding=UTF8 --locale=C --no-sync >log 2>&1 || exit 1
"$1/postgres" -D data -k "$2" -h 127.0.0.1 -p "$3" >>log 2>&1 &
server=$!
cat >/dev/null
kill -QUIT "$server"
wait "$server"
"#;

pub(crate) struct Postgres {
    pub(crate) address: SocketAddr,
    guard: Child,
    _folder: TempDir,
}

impl Postgres {
    pub(crate) async fn start() -> Result<Self> {
        let programs = programs().context("PostgreSQL is not installed (Debian: apt-get install postgresql)")?;
        // The server's user must reach the folder, wherever this user's temporary files are.
        let folder = tempfile::Builder::new().prefix("hikite-pg-").tempdir_in("/tmp")?;
        let address = free_address()?;
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(programs).arg(folder.path()).arg(address.port().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // PostgreSQL refuses to run as root.
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = unprivileged().context("there is no user `postgres` or `nobody`")?;
            chown(folder.path(), Some(uid), Some(gid))?;
            command.uid(uid).gid(gid);
        }
        let server = Self { address, guard: command.spawn()?, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            ensure!(started.elapsed() < TIMEOUT, "PostgreSQL does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(server)
    }

    /// Returns the database URL through this address.
    pub(crate) fn url(by: SocketAddr) -> String {
        format!("postgres://hikite:none@{by}/postgres")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let has = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    folders.into_iter().find(has)
}

fn unprivileged() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let id = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    id("postgres").or_else(|| id("nobody"))
}

/// A proxy that forwards connections while it is open. While closed, no data passes and nothing disconnects.
pub(crate) struct PausableProxy {
    pub(crate) address: SocketAddr,
    is_forwarding: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl PausableProxy {
    pub(crate) async fn before(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let is_forwarding = watch::Sender::new(true);
        let gate = is_forwarding.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let gate = gate.subscribe();
                connections.spawn(async move {
                    // Either side may disconnect.
                    let _ = forward(client, target, gate).await;
                });
            }
        });
        Ok(Self { address, is_forwarding, _tasks: tasks })
    }

    pub(crate) fn set_forwarding(&self, is_forwarding: bool) {
        self.is_forwarding.send_replace(is_forwarding);
    }
}

async fn forward(client: TcpStream, target: SocketAddr, gate: watch::Receiver<bool>) -> Result<()> {
    let server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::try_join!(pump(from_client, to_server, gate.clone()), pump(from_server, to_client, gate))?;
    Ok(())
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut gate: watch::Receiver<bool>,
) -> Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        gate.wait_for(|is_forwarding| *is_forwarding).await?;
        if count == 0 {
            return Ok(to.shutdown().await?);
        }
        to.write_all(&buffer[..count]).await?;
    }
}

//! A real PostgreSQL from this machine's own programs: one server per test program, a database per test. It listens
//! on a socket in a folder of its own, and ends with the test program however that ends.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

/// The guard of a server: makes it, tells that it runs, waits for the end of its own input, and ends it. That input
/// is held open by the test program alone, so that it ends even with a program that is killed.
const GUARD: &str = r#"
programs=$1 folder=$2 options=$3
# Whoever waits for a word from here may be gone; the rest is done all the same.
trap '' PIPE
cd "$folder"
if "$programs/initdb" --pgdata=data --username=hikite --auth=trust --encoding=UTF8 --locale=C --no-sync >log 2>&1 &&
    "$programs/pg_ctl" start --wait --silent --pgdata=data --log=log --options="$options" >/dev/null 2>&1
then
    echo ready
    cat >/dev/null
    "$programs/pg_ctl" stop --wait --silent --mode=immediate --pgdata=data >/dev/null 2>&1
else
    cat log
fi
cd / && rm -rf "$folder"
"#;

/// A running server.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    /// Where it listens beside its socket.
    port: Option<u16>,
    programs: PathBuf,
    /// The other end of the guard's input.
    guard: Child,
    databases: AtomicU32,
}

impl Server {
    /// One for this test alone, which may do to it what it likes. Others use [`database`].
    pub fn start() -> Self {
        Self::start_at(None)
    }

    /// The same, which also listens on a loopback port, so that what is between it and hikite can break.
    pub fn start_on_tcp() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        Self::start_at(Some(port))
    }

    fn start_at(port: Option<u16>) -> Self {
        let programs = programs();
        let user = unprivileged();
        let folder = folder(user);
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(&programs).arg(&folder).arg(options(&folder, port));
        // A group of its own: what a terminal sends to the tests is not for the guard.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        let mut guard = command.spawn().expect("a shell");
        let mut output = BufReader::new(guard.stdout.take().expect("piped"));
        let mut first = String::new();
        output.read_line(&mut first).expect("a guard that speaks");
        if first != "ready\n" {
            let mut rest = String::new();
            let _ = output.read_to_string(&mut rest);
            panic!("PostgreSQL (package: postgresql) does not start:\n{first}{rest}");
        }
        Self { folder, port, programs, guard, databases: AtomicU32::new(0) }
    }

    /// The address of a new database.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(self.programs.join("createdb"));
        command.arg("--host").arg(&self.folder).args(["--username=hikite", &name]);
        command.args(self.port.map(|port| format!("--port={port}")));
        let made = command.output().expect("createdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        if let Some(port) = self.port {
            return format!("postgres://hikite:not-asked-for@127.0.0.1:{port}/{name}");
        }
        let socket = self.folder.to_str().expect("UTF-8").replace('/', "%2F");
        format!("postgres://hikite:not-asked-for@{socket}/{name}")
    }

    /// Where it listens, if it does on a port.
    pub fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], self.port?)))
    }

    /// Ends every process of it at once, as a power cut would, and starts it again.
    pub fn crash(&self) {
        self.control("stop", "--mode=immediate");
        self.start_again();
    }

    /// Ends it as whoever looks after it would.
    pub fn stop(&self) {
        self.control("stop", "--mode=fast");
    }

    pub fn start_again(&self) {
        self.control("start", &format!("--options={}", options(&self.folder, self.port)));
    }

    fn control(&self, action: &str, how: &str) {
        let mut command = Command::new(self.programs.join("pg_ctl"));
        command.args([action, "--wait", "--silent", how]);
        command.arg("--pgdata").arg(self.folder.join("data")).arg("--log").arg(self.folder.join("log"));
        if let Some((uid, gid)) = unprivileged() {
            command.uid(uid).gid(gid);
        }
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().expect("pg_ctl").success(), "pg_ctl {action}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn options(folder: &Path, port: Option<u16>) -> String {
    let listens = port.map_or("-h ''".to_owned(), |port| format!("-h 127.0.0.1 -p {port}"));
    format!("-k '{}' {listens}", folder.display())
}

/// The address of a new, empty database on the server that all tests of this program share.
pub fn database() -> String {
    SERVER.database()
}

/// Where `initdb` and its like are. Without them the tests fail: PostgreSQL is half of what they are for.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Debian keeps them out of the way, a folder for each version.
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    found.extend(versions.map(|version| version.path().join("bin")));
    let whole = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "createdb"].iter().all(|program| folder.join(program).is_file())
    };
    let Some(folder) = found.into_iter().find(whole) else {
        panic!(
            "PostgreSQL is not installed: `initdb` is neither in PATH nor below /usr/lib/postgresql (package: postgresql)"
        )
    };
    folder
}

/// PostgreSQL refuses to run as root: then it is somebody else's.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("a list of users");
    let id = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(id("postgres").or_else(|| id("nobody")).expect("a user `postgres` or `nobody`"))
}

/// A folder of the server's user, where that user can get at it. The guard removes it.
fn folder(user: Option<(u32, u32)>) -> PathBuf {
    let mut builder = tempfile::Builder::new();
    builder.prefix("hikite-pg-");
    let Some((uid, gid)) = user else { return builder.tempdir().expect("a folder").keep() };
    let folder = builder.tempdir_in(Path::new("/tmp")).expect("a folder").keep();
    chown(&folder, Some(uid), Some(gid)).expect("root may");
    folder
}

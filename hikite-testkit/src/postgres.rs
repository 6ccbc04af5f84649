//! A real PostgreSQL from the installed programs: one server per test program, one database per test. It listens on a
//! socket in its own folder and stops with the test program, even if that is killed.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

static SERVER: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);

/// Guard script of a server: initializes and starts it, reports that it runs, waits for the end of its stdin, and stops
/// it. Only the test program holds that stdin open, so it also ends when the program is killed.
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
pub struct PostgresServer {
    folder: PathBuf,
    /// TCP port in addition to the socket.
    port: Option<u16>,
    programs: PathBuf,
    /// Holds the guard's stdin open.
    guard: Child,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Starts a private server that the test may stop or crash. Other tests use [`database`].
    pub fn start() -> Self {
        Self::start_at(None)
    }

    /// Starts a private server that also listens on a loopback port, so that the connection to hikite can be broken.
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
        // Its own process group, so that signals from the terminal do not reach the guard.
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

    /// Creates a database and returns its URL.
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

    /// Creates a database, runs these statements in it and returns its URL.
    pub fn database_with(&self, statements: &str) -> String {
        let url = self.database();
        let mut command = Command::new(self.programs.join("psql"));
        command.args([&url, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]);
        let mut psql = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql");
        psql.stdin.take().expect("piped").write_all(statements.as_bytes()).expect("read");
        let done = psql.wait_with_output().expect("psql");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        url
    }

    /// Returns the TCP address, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], self.port?)))
    }

    /// Kills every process of the server at once, as a power cut would, and restarts it.
    pub fn crash(&self) {
        self.control("stop", "--mode=immediate");
        self.start_again();
    }

    /// Stops the server as an administrator would.
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

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn options(folder: &Path, port: Option<u16>) -> String {
    let listens = port.map_or("-h ''".to_owned(), |port| format!("-h 127.0.0.1 -p {port}"));
    format!("-k '{}' {listens}", folder.display())
}

/// Creates an empty database on the server shared by all tests of this program and returns its URL.
pub fn database() -> String {
    SERVER.database()
}

/// Creates a database on that server, runs these statements in it and returns its URL.
pub fn database_with(statements: &str) -> String {
    SERVER.database_with(statements)
}

/// Returns `true` if this run excludes PostgreSQL, as `./test --fast` and `./test --quick` do. Tests of both engines then
/// run on SQLite alone.
pub fn is_excluded() -> bool {
    std::env::var_os("HIKITE_TEST_POSTGRES").is_some_and(|value| value == "exclude")
}

/// Returns the folder of `initdb` and the other programs. Without them the tests fail: PostgreSQL is half of their
/// subject.
fn programs() -> PathBuf {
    assert!(
        !is_excluded(),
        "this test needs PostgreSQL, which HIKITE_TEST_POSTGRES=exclude leaves out: add it to `postgres_tests` in ./test"
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Debian installs them outside `PATH`, in a folder per version.
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    found.extend(versions.map(|version| version.path().join("bin")));
    let whole = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "createdb", "psql"].iter().all(|program| folder.join(program).is_file())
    };
    let Some(folder) = found.into_iter().find(whole) else {
        panic!(
            "PostgreSQL is not installed: `initdb` is neither in PATH nor below /usr/lib/postgresql (package: postgresql)"
        )
    };
    folder
}

/// Returns the user to run as if the tests run as root, which PostgreSQL refuses.
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

/// Creates a folder that the server's user owns and can reach. The guard removes it.
fn folder(user: Option<(u32, u32)>) -> PathBuf {
    let mut builder = tempfile::Builder::new();
    builder.prefix("hikite-pg-");
    let Some((uid, gid)) = user else { return builder.tempdir().expect("a folder").keep() };
    let folder = builder.tempdir_in(Path::new("/tmp")).expect("a folder").keep();
    chown(&folder, Some(uid), Some(gid)).expect("root may");
    folder
}

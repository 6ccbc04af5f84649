//! The real program in a test: `hikite serve` as a process on a free loopback port, with its own config and data
//! folder, and test clients. Dropping it kills it and asserts that no process it started is left.

mod client;
mod client_options;
mod command;
mod http;
mod link;
mod process;
mod schema_checker;
mod stateless;

use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

pub use client::{PendingCall, SETTLE_TIME, SessionClient};
pub use client_options::{ClientOptions, ServerRequest, ServerRequestHandler};
pub use command::{CommandOutput, TestPrograms};
pub use http::{HttpReply, HttpRequest, RequestFailure, SseEvents, StreamingReply};
pub use process::{ProcessEntry, hang_up, is_alive, kill, marked};
pub use stateless::{
    AnsweredCall, REVISION, StatelessCall, StatelessClient, StatelessEnvelope, StatelessOutcome, SubscriptionStream,
    encode,
};

/// Limit of every wait in a test.
pub const LIMIT: Duration = Duration::from_secs(10);
/// Time for orphaned processes to exit.
const GONE: Duration = Duration::from_secs(5);

/// A running gateway.
#[derive(Debug)]
pub struct TestGateway {
    programs: TestPrograms,
    folder: Arc<TempDir>,
    child: Child,
    address: SocketAddr,
    token: String,
    stderr: Arc<Mutex<String>>,
}

impl TestGateway {
    /// Starts the program and waits until it listens.
    pub async fn start(programs: &TestPrograms, config: Value) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Self::start_in(programs, folder, config).await
    }

    /// Starts the program without flags: the config file sets the listen address and the data folder. That folder must
    /// be `data`, and the address reachable at 127.0.0.1.
    pub async fn start_by_file(programs: &TestPrograms, config: Value) -> Self {
        Self::start_by_file_with(programs, config, &[]).await
    }

    /// Starts the program without flags, with additional environment variables.
    pub async fn start_by_file_with(programs: &TestPrograms, config: Value, variables: &[(&str, &str)]) -> Self {
        assert!(config["server"]["listen"].is_string(), "without an address two tests would share the default port");
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let mut command = programs.hikite_by_file(folder.path());
        command.arg("serve").envs(variables.iter().copied());
        Self::run_in(programs, folder, config, command).await
    }

    /// Starts the program with additional environment variables.
    pub async fn start_with(programs: &TestPrograms, config: Value, variables: &[(&str, &str)]) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let mut command = programs.hikite(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).envs(variables.iter().copied());
        Self::run_in(programs, folder, config, command).await
    }

    /// Starts the program from a shell after a line such as `ulimit -n 64`.
    pub async fn start_after(programs: &TestPrograms, config: Value, line: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let program = programs.hikite(folder.path());
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{line}; exec \"$0\" \"$@\"")).arg(program.get_program());
        command.args(program.get_args()).args(["serve", "--listen", "127.0.0.1:0"]);
        command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(folder.path());
        Self::run_in(programs, folder, config, command).await
    }

    async fn start_in(programs: &TestPrograms, folder: Arc<TempDir>, config: Value) -> Self {
        let mut command = programs.hikite(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        Self::run_in(programs, folder, config, command).await
    }

    async fn run_in(programs: &TestPrograms, folder: Arc<TempDir>, config: Value, mut command: Command) -> Self {
        write(&folder, &without_services(&config).to_string());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("hikite");
        let (stderr, reader) = gather(&mut child);
        let mut address = listening(&mut child, &stderr, &reader).await;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let token = std::fs::read_to_string(folder.path().join("data/token")).unwrap_or_default().trim().to_owned();
        Self { programs: programs.clone(), folder, child, address, token, stderr }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the MCP URL of a surface; an empty surface is the configured default.
    pub fn url(&self, surface: &str) -> String {
        format!("http://{}{}", self.address, path(surface))
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn folder(&self) -> &Arc<TempDir> {
        &self.folder
    }

    pub fn config_file(&self) -> PathBuf {
        self.folder.path().join("hikite.json")
    }

    /// Returns stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().clone()
    }

    /// Waits until stderr contains the text.
    pub async fn wait_for_stderr(&self, text: &str) {
        let said = eventually(|| self.stderr.lock().contains(text)).await;
        assert!(said, "`{text}` was not said:\n{}", self.stderr());
    }

    /// Returns all living descendants, including reparented ones.
    pub fn descendants(&self) -> Vec<ProcessEntry> {
        process::marked(self.folder.path()).into_iter().filter(|process| process.pid != self.pid()).collect()
    }

    /// Waits until there are no descendants, and returns `true` if so.
    pub async fn has_no_descendants(&self) -> bool {
        within(GONE, || self.descendants().is_empty()).await
    }

    /// Returns its unreaped dead children.
    pub fn zombies(&self) -> Vec<ProcessEntry> {
        process::zombies_of(self.pid())
    }

    /// Opens a session client that declares no capabilities.
    pub async fn client(&self, surface: &str) -> SessionClient {
        self.client_with(surface, ClientOptions::default()).await
    }

    pub async fn client_with(&self, surface: &str, hello: ClientOptions) -> SessionClient {
        SessionClient::over_http(self.address, &path(surface), Some(&self.token), hello).await
    }

    /// Creates a client of the stateless revision.
    pub fn stateless(&self, surface: &str, envelope: StatelessEnvelope) -> StatelessClient {
        StatelessClient::over_http(self.address, &path(surface), Some(&self.token), envelope)
    }

    /// Creates an HTTP request with the token.
    pub fn request(&self, method: &str, path: &str) -> HttpRequest {
        HttpRequest::new(method, path).header("authorization", &format!("Bearer {}", self.token))
    }

    pub async fn send(&self, request: HttpRequest) -> HttpReply {
        request.send(self.address).await
    }

    /// Replaces the config file, which a running gateway reloads.
    pub fn write_config(&self, config: &Value) {
        self.write_text(&without_services(config).to_string());
    }

    pub fn write_text(&self, text: &str) {
        write(&self.folder, text);
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill9(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("our child");
    }

    /// Sends `SIGHUP`, which reloads the config.
    pub fn hang_up(&self) {
        process::signal(self.pid(), rustix::process::Signal::HUP);
    }

    /// Makes the kernel refuse every file write, as on a full disk, or accept them again. The program must ignore
    /// SIGXFSZ.
    pub fn fill_disk(&self, is_full: bool) {
        process::limit(self.pid(), rustix::process::Resource::Fsize, is_full.then_some(0));
    }

    /// Sets the soft limit of open files.
    pub fn limit_files(&self, files: u64) {
        process::limit(self.pid(), rustix::process::Resource::Nofile, Some(files));
    }

    /// Stops the process with `SIGSTOP`, as on a suspended machine.
    pub fn suspend(&self) {
        process::signal(self.pid(), rustix::process::Signal::STOP);
    }

    pub fn wake(&self) {
        process::signal(self.pid(), rustix::process::Signal::CONT);
    }

    pub fn terminate(&self) {
        process::signal(self.pid(), rustix::process::Signal::TERM);
    }

    /// Sends `SIGTERM` and waits for the exit.
    pub async fn stop(&mut self) -> ExitStatus {
        self.terminate();
        self.exit().await
    }

    pub async fn exit(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status;
            }
            assert!(begin.elapsed() < LIMIT * 2, "it does not stop:\n{}", self.stderr());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits for an exit that may take as long as all final retries.
    pub async fn slow_exit(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status;
            }
            assert!(begin.elapsed() < LIMIT * 12, "it does not stop:\n{}", self.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts a new process on the data of one that has ended.
    pub async fn start_again(self, config: Value) -> Self {
        let (programs, folder) = (self.programs.clone(), Arc::clone(&self.folder));
        drop(self);
        Self::start_in(&programs, folder, config).await
    }

    /// Stops the process and starts a new one on its data.
    pub async fn restart(mut self, config: Value) -> Self {
        assert!(self.stop().await.success(), "{}", self.stderr());
        let (programs, folder) = (self.programs.clone(), Arc::clone(&self.folder));
        drop(self);
        Self::start_in(&programs, folder, config).await
    }

    /// Runs another command of the program on this config and data.
    pub async fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.programs.run(self.folder.path(), arguments).await
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        // Both fail only if it has exited and been reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let begin = Instant::now();
        loop {
            let left = process::marked(self.folder.path());
            if left.is_empty() {
                return;
            }
            if begin.elapsed() > GONE {
                for process in &left {
                    kill(process.pid);
                }
                assert!(std::thread::panicking(), "still alive after the gateway: {left:#?}");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns `true` if the condition holds within `LIMIT`.
pub async fn eventually(check: impl FnMut() -> bool) -> bool {
    within(LIMIT, check).await
}

pub async fn within(limit: Duration, mut check: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        if check() {
            return true;
        }
        if begin.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn path(surface: &str) -> String {
    if surface.is_empty() { "/mcp".to_owned() } else { format!("/mcp?surface={surface}") }
}

/// Disables the built-in services unless the config has a `modules` section.
fn without_services(config: &Value) -> Value {
    let mut config = config.clone();
    if let Some(members) = config.as_object_mut() {
        members.entry("modules").or_insert_with(|| serde_json::json!({ "builtin": false }));
    }
    config
}

/// Writes the config to a temporary file and renames it, so that the gateway never reads half a file.
fn write(folder: &TempDir, text: &str) {
    let beside = folder.path().join("hikite.json.new");
    std::fs::write(&beside, text).expect("a file");
    std::fs::rename(beside, folder.path().join("hikite.json")).expect("a file");
}

fn gather(child: &mut Child) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let gathered = Arc::new(Mutex::new(String::new()));
    let pipe = child.stderr.take().expect("piped");
    let lines = Arc::clone(&gathered);
    // Ends with the pipe.
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut lines = lines.lock();
            lines.push_str(&line);
            lines.push('\n');
        }
    });
    (gathered, reader)
}

async fn listening(child: &mut Child, stderr: &Mutex<String>, reader: &JoinHandle<()>) -> SocketAddr {
    let found = || {
        let text = stderr.lock();
        let (_, after) = text.split_once("listening on http")?;
        let (_, after) = after.split_once("://")?;
        // The token is printed before, the snippets after.
        after.split(|end: char| end.is_whitespace() || end == '"').next()?.parse().ok()
    };
    let begin = Instant::now();
    loop {
        if let Some(address) = found() {
            return address;
        }
        // The last lines may still be in the pipe when the program has ended.
        let ended = child.try_wait().expect("our child").filter(|_| reader.is_finished());
        assert!(ended.is_none() && begin.elapsed() < LIMIT, "it does not listen ({ended:?}):\n{}", stderr.lock());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns the environment entry that marks every process of this folder.
pub(crate) fn mark(folder: &Path) -> String {
    format!("TMPDIR={}", folder.display())
}

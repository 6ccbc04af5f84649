//! Persistence: no committed write is lost, on either kind of store, whenever a process is killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use hikite_store::{AuditCursor, AuditFilter, AuditRow, Store, StoreUrl};
use hikite_testkit::gateway::LIMIT;
use hikite_testkit::postgres::{PostgresServer, database};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{PROGRAMS, configured, http_fixture};

/// A factory of new stores of one kind.
struct StoreEngine {
    folder: TempDir,
    postgres: bool,
}

impl StoreEngine {
    fn both() -> [Self; 2] {
        [false, true].map(|postgres| Self { folder: tempfile::tempdir().expect("a folder"), postgres })
    }

    fn url(&self, name: &str) -> String {
        if self.postgres {
            return database();
        }
        format!("sqlite:{}", self.folder.path().join(name).display())
    }
}

async fn open(url: &str) -> Store {
    Store::open(&StoreUrl::parse(url).expect("an address")).await.expect("a store")
}

/// A process that writes rows and reports each.
struct WriterProcess {
    child: Child,
    told: BufReader<std::process::ChildStdout>,
    numbers: Vec<u64>,
}

impl WriterProcess {
    fn start(url: &str, from: &str) -> Self {
        let mut command = PROGRAMS.writer();
        let command = command.args([url, from]).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("a writer");
        let told = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, told, numbers: Vec::new() }
    }

    /// Reads this many more reports, or all there are.
    fn read(&mut self, count: usize) {
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            // Half a line is not a report.
            if self.told.read_line(&mut line).expect("a pipe") == 0 || !line.ends_with('\n') {
                return;
            }
            self.numbers.push(line.trim().parse().expect("a number"));
        }
    }

    fn kill(mut self) -> Vec<u64> {
        self.child.kill().expect("our child");
        self.child.wait().expect("our child");
        self.read(usize::MAX);
        self.numbers
    }
}

/// Asserts that all reported rows are there and each change was atomic: as many rows as revisions.
async fn holds(url: &str, told: &[u64]) -> u64 {
    let store = open(url).await;
    let (rows, revision) = settled(&store).await;
    let lost: Vec<&u64> = told.iter().filter(|number| rows.binary_search(number).is_err()).collect();
    assert!(lost.is_empty(), "committed and lost: {lost:?} of {rows:?}");
    assert_eq!(revision, i64::try_from(rows.len()).expect("few"));
    assert_eq!(store.check().await.expect("checked"), [""; 0]);
    let recorded = recorded(&store).await;
    let lost: Vec<&u64> = told.iter().filter(|number| recorded.binary_search(number).is_err()).collect();
    assert!(lost.is_empty(), "recorded and lost: {lost:?} of {recorded:?}");
    store.close().await;
    rows.last().map_or(0, |last| last + 1)
}

/// Returns the audited numbers after verifying the chain.
async fn recorded(store: &Store) -> Vec<u64> {
    let verified = store.audit().verify(None, |_, _| {}).await.expect("verified");
    assert_eq!(verified.broken, None);
    let rows = store.audit().read(&AuditFilter::default(), AuditCursor::On(0), usize::MAX >> 1).await.expect("read");
    let number = |row: &AuditRow| {
        let record: Value = serde_json::from_str(&row.record).expect("JSON");
        record["requestId"].as_str().and_then(|id| id.parse().ok()).expect("a number")
    };
    let mut numbers: Vec<u64> = rows.iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until a killed process's last commit, which may still be under way in the database, has settled.
async fn settled(store: &Store) -> (Vec<u64>, i64) {
    loop {
        let before = store.changes().revision().await.expect("read");
        let rows = store.tools().registered().await.expect("read").iter().map(|tool| tool.registered_at).collect();
        if store.changes().revision().await.expect("read") == before {
            return (rows, before);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_committed_row_is_lost_in_a_hundred_kills() {
    for engine in StoreEngine::both() {
        let (mut told, mut next, mut all) = (Vec::new(), 0, 0);
        let mut url = String::new();
        for round in 0..100_usize {
            // Sometimes a new one, so that some are killed while they create it.
            if round % 20 == 0 {
                all += told.len();
                (told, next, url) = (Vec::new(), 0, engine.url(&format!("{round}.db")));
            }
            let mut writer = WriterProcess::start(&url, &next.to_string());
            writer.read(round % 9);
            std::thread::sleep(Duration::from_micros(u64::try_from(round).expect("small") * 137 % 4000));
            told.extend(writer.kill());
            next = holds(&url, &told).await;
        }
        assert!(all + told.len() >= 300, "it was killed while it wrote");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_record_at_once_keep_one_chain() {
    for engine in StoreEngine::both() {
        let url = engine.url("shared.db");
        let mut writers = ["0", "100000", "200000"].map(|from| WriterProcess::start(&url, from));
        for writer in &mut writers {
            writer.read(40);
        }
        let told: Vec<u64> = writers.into_iter().flat_map(WriterProcess::kill).collect();
        assert!(told.len() >= 120);
        holds(&url, &told).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_postgresql_committed_outlives_its_own_crash() {
    let server = PostgresServer::start();
    let url = server.database();
    let (mut told, mut next) = (Vec::new(), 0);
    for _ in 0..3 {
        let mut writer = WriterProcess::start(&url, &next.to_string());
        writer.read(30);
        server.crash();
        told.extend(writer.kill());
        next = holds(&url, &told).await;
    }
    assert!(told.len() >= 90);
}

#[tokio::test]
async fn processes_that_open_a_new_store_at_once_make_it_once() {
    for engine in StoreEngine::both() {
        for round in 0..3 {
            let url = engine.url(&format!("{round}.db"));
            let writers: Vec<WriterProcess> = (0..6).map(|_| WriterProcess::start(&url, "--open")).collect();
            let mut found = Vec::new();
            for mut writer in writers {
                writer.read(usize::MAX);
                assert!(writer.child.wait().expect("our child").success());
                found.extend(writer.numbers);
            }
            found.sort_unstable();
            let newest = u64::try_from(hikite_store::NEWEST).expect("a version");
            assert_eq!(found, [0, newest, newest, newest, newest, newest]);
            holds(&url, &[]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_taken_while_others_write_is_a_whole_store() {
    for engine in StoreEngine::both() {
        let url = engine.url("written.db");
        let mut writer = WriterProcess::start(&url, "0");
        writer.read(20);
        let store = open(&url).await;
        for round in 0..5 {
            let copy = engine.folder.path().join(format!("copy{round}.db"));
            writer.read(20);
            let before = writer.numbers.clone();
            store.backup(&copy).await.expect("copied");
            let copy = open(&format!("sqlite:{}", copy.display())).await;
            let rows = copy.tools().registered().await.expect("read");
            assert!(rows.len() >= before.len(), "what was told before is in it: {} of {before:?} {url}", rows.len());
            let numbers = rows.iter().map(|tool| tool.registered_at);
            assert!(numbers.eq(0..u64::try_from(rows.len()).expect("few")), "and nothing is left out between");
            assert_eq!(copy.check().await.expect("checked"), [""; 0]);
        }
        let told = writer.kill();
        holds(&url, &told).await;
    }
}

#[tokio::test]
async fn lists_outlive_a_restart_on_postgresql_and_its_password_shows_nowhere() {
    let url = database();
    let (fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "store": { "url": url } });
    let gateway = configured(config.clone()).await;
    let before = gateway.client("direct").await.raw_result("tools/list", json!({})).await;
    fixture.stop().await;
    let gateway = gateway.restart(config).await;
    let shown = gateway.client("direct").await.raw_result("tools/list", json!({})).await;
    assert_eq!(shown, before);
    let show = gateway.run(&["config", "show"]).await;
    let said: Value = serde_json::from_str(&show.stdout).expect("JSON");
    assert!(said["store"]["url"].as_str().expect("text").contains(":***@"), "{}", show.stdout);
    let check = gateway.run(&["store", "check"]).await;
    assert_eq!(check.code, Some(0), "{}", check.stderr);
    for text in [gateway.stderr(), show.stdout, show.stderr, check.stdout, check.stderr] {
        assert!(!text.contains("not-asked-for"), "{text}");
    }
    assert!(!gateway.folder().path().join("data/hikite.db").exists());
}

#[tokio::test]
async fn a_store_is_checked_copied_and_moved_from_a_terminal() {
    let (_fixture, server) = http_fixture().await;
    let mut gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let tools = gateway.client("direct").await.names("tools/list").await;
    let copy = gateway.folder().path().join("copy.db");
    // While it runs.
    let run = gateway.run(&["store", "backup", copy.to_str().expect("UTF-8")]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with(&format!("{}: ", copy.display())), "{}", run.stdout);
    let again = gateway.run(&["store", "backup", copy.to_str().expect("UTF-8")]).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("hint: Choose a file that does not exist yet."), "{}", again.stderr);
    let check = gateway.run(&["store", "check", "--json"]).await;
    let report: Value = serde_json::from_str(&check.stdout).expect("JSON");
    assert_eq!((&report["findings"], &report["version"]), (&json!([]), &json!(hikite_store::NEWEST)));
    assert!(gateway.stop().await.success());
    let run = gateway.run(&["store", "migrate"]).await;
    let nothing = format!("data/hikite.db: version {}, nothing to do\n", hikite_store::NEWEST);
    assert!(run.stdout.ends_with(&nothing), "{}", run.stdout);
    let to = database();
    let run = gateway.run(&["store", "migrate", "--json", "--to", &to]).await;
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    // The list, the first-seen time of each tool, its pin and the pinned definition, the setup link, two keys sealed by
    // a third, and the day.
    let rows = json!(3 * tools.len() + 1 + 5);
    assert_eq!(
        (&report["from"], &report["version"], &report["copied"]["rows"]),
        (&json!(hikite_store::NEWEST), &json!(hikite_store::NEWEST), &rows)
    );
    let run = gateway.run(&["store", "migrate", "--to", &to]).await;
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("is not empty") && !run.stderr.contains("not-asked-for"), "{}", run.stderr);
    let run = gateway.run(&["store", "migrate", "--to", "mysql://u:hunter2@h/d"]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("hint: Write `sqlite:PATH`") && !run.stderr.contains("hunter2"), "{}", run.stderr);
}

#[tokio::test]
async fn a_store_that_cannot_be_used_ends_the_start_and_the_doctor_names_it() {
    let (_fixture, server) = http_fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "mcpServers": { "a": server }, "server": { "listen": "127.0.0.1:0" }, "store": { "url": "sqlite:broken.db" } });
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    std::fs::write(folder.path().join("broken.db"), "not a database ".repeat(500)).expect("a file");
    for arguments in [&["serve"][..], &["tools", "list"], &["store", "check"]] {
        let run = PROGRAMS.run(folder.path(), arguments).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        let said = format!("error: the store sqlite:{}/broken.db is damaged", folder.path().display());
        assert!(run.stderr.contains(&said) && run.stderr.contains("\nhint: Stop hikite"), "{}", run.stderr);
    }
    let doctor = PROGRAMS.run(folder.path(), &["doctor", "--json", "--wait", "120"]).await;
    let findings: Value = serde_json::from_str(&doctor.stdout).expect("JSON");
    let level = |what: &str| {
        let found = findings.as_array().expect("findings").iter().find(|finding| finding["what"] == what);
        found.map(|finding| finding["level"].clone()).unwrap_or_default()
    };
    assert_eq!((level("store"), level("server a")), (json!("error"), json!("ok")), "{findings}");
}

#[tokio::test]
async fn two_gateways_on_one_file_go_on_side_by_side() {
    let (_fixture, server) = http_fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("shared.db").display());
    // Each must be able to open what the other seals.
    let key = folder.path().join("vault.key");
    let config = json!({ "mcpServers": { "a": server }, "store": { "url": url }, "vault": { "key_file": key } });
    let (one, other) = tokio::join!(configured(config.clone()), configured(config));
    for gateway in [&one, &other] {
        let begin = std::time::Instant::now();
        while gateway.client("direct").await.names("tools/list").await.len() != 33 {
            assert!(begin.elapsed() < LIMIT, "{}", gateway.stderr());
        }
        let said = gateway.stderr();
        assert!(!said.contains("failed to cache") && !said.contains("is not cached"), "{said}");
    }
    assert_eq!(open(&url).await.check().await.expect("checked"), [""; 0]);
}

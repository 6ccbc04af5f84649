//! Cost of a change to a project, token, user or setting by number of projects: hikite's CPU time per change including
//! follow-up work, and memory once every project was used.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use serde_json::{Value, json};

use super::BenchRun;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::procfs;
use crate::rig::rest::RestClient;
use crate::rig::table::{ReportTable, TableCell, median};

const TOOLS: usize = 1_000;
const PROJECTS: &[usize] = &[10, 100, 1_000];
/// Changes of each kind per round, enough for the clock's 10 ms ticks not to matter.
const CHANGES: usize = 50;
/// Time for follow-up work to finish: the store is polled twice a second.
const SETTLE: Duration = Duration::from_secs(2);
const MIB: f64 = 1024.0 * 1024.0;

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let (folder, upstream) = (tempfile::tempdir()?, UpstreamChild::with_tools(TOOLS)?);
    let servers = json!({ "bench": http_server(upstream.address, 0) });
    let gateway = GatewayChild::start(&bench.hikite, folder.path(), &servers)?;
    gateway.tools(TOOLS).await?;
    let mut admin = ProjectAdmin { rest: RestClient::open(gateway.target.address).await?, made: 0 };
    let mut rows = Vec::new();
    let mut there = 0;
    for count in PROJECTS {
        while there < *count {
            let rule = json!({ "deny": [format!("bench:tool_{there}"), format!("bench:none-{there}")] });
            let form = json!({ "name": format!("p{there}"), "permissions": rule });
            admin.send(Method::POST, "/v1/projects", Some(form)).await?;
            admin.request_tool(there).await?;
            there += 1;
        }
        let mut row = vec![TableCell::text(count.to_string())];
        for kind in [ProjectChange::Project, ProjectChange::Token, ProjectChange::User, ProjectChange::Switch] {
            let mut cpu = Vec::new();
            for _ in 0..bench.rounds {
                cpu.push(admin.cpu_ms(&gateway, kind, there).await?);
            }
            row.push(TableCell::Number(median(cpu), 2));
        }
        for number in 0..there {
            admin.request_tool(number).await?;
        }
        #[expect(clippy::cast_precision_loss, reason = "far less memory than a double counts exactly")]
        row.push(TableCell::Number(procfs::memory(gateway.pid())?.0 as f64 / MIB, 0));
        rows.push(row);
    }
    gateway.stop()?;
    let title = format!(
        "CPU ms of one change among {TOOLS} tools, medians of {} rounds of {CHANGES} changes; memory after a look in every project",
        bench.rounds
    );
    let columns = &["projects", "project", "token", "user", "switch", "RSS MiB"];
    Ok(ReportTable { name: "projects", title, columns, rows })
}

#[derive(Clone, Copy)]
enum ProjectChange {
    Project,
    Token,
    User,
    Switch,
}

struct ProjectAdmin {
    rest: RestClient,
    made: usize,
}

impl ProjectAdmin {
    /// Returns CPU milliseconds per change, including follow-up work.
    async fn cpu_ms(&mut self, gateway: &GatewayChild, kind: ProjectChange, there: usize) -> Result<f64> {
        tokio::time::sleep(SETTLE).await;
        let before = gateway.cpu_seconds()?;
        for number in 0..CHANGES {
            self.change(kind, number % there).await?;
        }
        tokio::time::sleep(SETTLE).await;
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        Ok((gateway.cpu_seconds()? - before) * 1000.0 / CHANGES as f64)
    }

    /// Makes one change; a changed project's view is also requested once.
    async fn change(&mut self, kind: ProjectChange, at: usize) -> Result<()> {
        self.made += 1;
        let made = self.made;
        match kind {
            ProjectChange::Project => {
                let rule =
                    json!({ "permissions": { "deny": [format!("bench:tool_{at}"), format!("bench:none-{made}")] } });
                self.send(Method::PATCH, &format!("/v1/projects/p{at}"), Some(rule)).await?;
                self.request_tool(at).await
            }
            ProjectChange::Token => {
                let form = json!({ "name": "bench", "project": format!("p{at}") });
                self.send(Method::POST, "/v1/tokens", Some(form)).await.map(drop)
            }
            ProjectChange::User => {
                let mask = json!({ "deny": [format!("bench:none-{made}")] });
                // Hashing a password costs more than all the rest, so one user is changed, not created.
                if made == 1 || !self.has_user().await? {
                    let form = json!({ "name": "bench", "password": "a long enough password" });
                    self.send(Method::POST, "/v1/users", Some(form)).await?;
                }
                self.send(Method::PATCH, "/v1/users/bench", Some(json!({ "permissions": mask }))).await.map(drop)
            }
            ProjectChange::Switch => {
                let word = if made.is_multiple_of(2) { "enable" } else { "disable" };
                self.send(Method::POST, &format!("/v1/tools/bench:echo/{word}"), None).await.map(drop)
            }
        }
    }

    async fn has_user(&mut self) -> Result<bool> {
        let users = self.send(Method::GET, "/v1/users", None).await?;
        Ok(users.to_string().contains("\"bench\""))
    }

    /// Requests a tool in a project, so that its view is built.
    async fn request_tool(&mut self, project: usize) -> Result<()> {
        let request = self.request(Method::GET, "/v1/tools/bench:echo").header("hikite-project", format!("p{project}"));
        let answer = self.rest.ask(request.body(Full::default())?).await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        Ok(())
    }

    fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        Request::builder().method(method).uri(path).header(HOST, self.rest.address().to_string())
    }

    async fn send(&mut self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let request = self.request(method, path).header(CONTENT_TYPE, "application/json");
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let answer = self.rest.ask(request.body(Full::from(body))?).await?;
        let status = answer.status();
        let body = answer.into_body();
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&body).context("JSON") }
    }
}

//! Two nodes on one PostgreSQL, one of them cut off: no data passes between it and the database, and nothing closes. It
//! continues for `store.max_staleness`, then refuses what may have been revoked; it recovers by itself, and the audit
//! has every answered call.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::Full;
use hyper::Request;
use hyper::header::HOST;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::check::FaultCheck;
use super::settings::{self, FaultSettings};
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::postgres::{PausableProxy, Postgres};
use crate::rig::process::{GatewayChild, UpstreamChild};
use crate::rig::rest::RestClient;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Time after `store.max_staleness` within which a revoked call may still be answered: the store is polled twice a
/// second.
const BEYOND_S: f64 = 1.0;
const READY_AGAIN_S: f64 = 10.0;

/// One node and its folder.
struct CutOffNode {
    gateway: GatewayChild,
    folder: TempDir,
}

/// Id and secret of a token.
struct TokenSecret {
    id: String,
    secret: String,
}

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    // The full row tests the default, 30 s.
    let (staleness, cut) = if settings.is_short { (Some(3), 8) } else { (None, settings.lasts(60, 0).as_secs()) };
    let database = Postgres::start().await?;
    let gate = PausableProxy::before(database.address).await?;
    let upstream = UpstreamChild::start()?;
    let open = |by: SocketAddr| node(settings, &upstream, &Postgres::url(by), staleness);
    let well = open(database.address)?;
    well.gateway.tools(TOOLS).await?;
    let cut_off = open(gate.address)?;
    let tools = cut_off.gateway.tools(TOOLS).await?;
    let echo = tools.iter().find(|tool| tool.ends_with("echo")).context("no tool to call")?;
    let mut rest = RestClient::open(well.gateway.target.address).await?;
    let (revoked, good) = (token(&mut rest, "revoked").await?, token(&mut rest, "good").await?);
    let place = cut_off.gateway.target.address;
    for token in [&revoked, &good] {
        becomes(place, "/v1/tools", Some(token), 200).await?;
    }
    let mut client = RigClient::open_as(&cut_off.gateway.target, Some(&good.secret), TIMEOUT).await?;
    client.echo(echo).await?;

    gate.set_forwarding(false);
    let begin = Instant::now();
    let revoke = Request::delete(format!("/v1/tokens/{}", revoked.id)).header(HOST, "localhost");
    rest.ask(revoke.body(Full::default())?).await?;
    let seen = watch(&mut client, echo, (place, &revoked), begin, Duration::from_secs(cut)).await?;
    let ready_meanwhile = (readiness(&cut_off).await?, readiness(&well).await?);

    gate.set_forwarding(true);
    let back = Instant::now();
    let ready = becomes(place, "/readyz", None, 200).await;
    let ready_after = ready.map_or(f64::INFINITY, |()| back.elapsed().as_secs_f64());
    let after = (status(place, "/v1/tools", Some(&revoked)).await?.0, status(place, "/v1/tools", Some(&good)).await?.0);
    let session_survives = client.echo(echo).await.is_ok();
    // The audit follows later.
    let calls = 1 + seen.answered + u64::from(session_survives);
    let records = audited(&mut rest, calls, &good.id).await?;
    let chain: Value = serde_json::from_slice(&rest.get("/v1/audit/verify").await?)?;
    let is_intact = chain["intact"] == true;
    let bound = f64::from(staleness.unwrap_or(30)) + settings.within(BEYOND_S);
    let ready_bound = settings.within(READY_AGAIN_S);
    let mut checks = seen.checks(bound);
    checks.extend([
        FaultCheck::that(
            "/readyz of the node, and of the other",
            "503, 200",
            format!("{}, {}", ready_meanwhile.0, ready_meanwhile.1),
            ready_meanwhile == (503, 200),
        ),
        FaultCheck::at_most(format!("ready again after {cut} s without the store"), ready_after, ready_bound, "s"),
        FaultCheck::that(
            "the revoked token and the other one afterwards",
            "401, 200",
            format!("{}, {}", after.0, after.1),
            after == (401, 200),
        ),
        FaultCheck::that("the session goes on", "yes", if session_survives { "yes" } else { "no" }, session_survives),
        FaultCheck::that(
            "answered calls that are not in the audit",
            "0, chain intact",
            format!("{records} of {calls} there, intact {is_intact}"),
            records >= calls && is_intact,
        ),
        no_panic(&[&well, &cut_off])?,
    ]);
    Ok(checks)
}

fn node(settings: &FaultSettings, upstream: &UpstreamChild, store: &str, staleness: Option<u32>) -> Result<CutOffNode> {
    let folder = tempfile::tempdir()?;
    let mut config = settings::config(upstream, &json!({}), &[]);
    config["store"] = json!({ "url": store });
    if let Some(staleness) = staleness {
        config["store"]["max_staleness"] = format!("{staleness}s").into();
    }
    let mut program = Command::new(&settings.hikite);
    // Nodes of one store must share it.
    program.env("HIKITE_VAULT_KEY", "7".repeat(64));
    Ok(CutOffNode { gateway: GatewayChild::launch(program, folder.path(), &config)?, folder })
}

async fn token(rest: &mut RestClient, name: &str) -> Result<TokenSecret> {
    let made: Value = serde_json::from_slice(&rest.post("/v1/tokens", json!({ "name": name }).to_string()).await?)?;
    let text = |member: &str| made[member].as_str().map(Into::into).context("a token without a name");
    Ok(TokenSecret { id: text("id")?, secret: text("secret")? })
}

/// Observations while the node was cut off.
#[derive(Default)]
struct CutOffCounts {
    accepted_until: Duration,
    accepted_again: usize,
    requests: usize,
    early: usize,
    failed_early: usize,
    refused: usize,
    told: usize,
    answered: u64,
}

impl CutOffCounts {
    fn checks(&self, bound: f64) -> Vec<FaultCheck> {
        vec![
            FaultCheck::at_most("a revoked token is accepted for", self.accepted_until.as_secs_f64(), bound, "s"),
            FaultCheck::none("and accepted again while the store is away", self.accepted_again, self.requests),
            FaultCheck::none("calls that fail before the store is held to be away", self.failed_early, self.early),
            FaultCheck::that(
                "what is refused is told why and when to come back",
                "503 with Retry-After",
                format!("{} of {}", self.told, self.refused),
                self.told == self.refused && self.refused > 0,
            ),
        ]
    }
}

/// Calls with a valid token and with a revoked one for a while.
async fn watch(
    client: &mut RigClient,
    echo: &str,
    (place, revoked): (SocketAddr, &TokenSecret),
    begin: Instant,
    span: Duration,
) -> Result<CutOffCounts> {
    let (mut seen, mut has_just_failed) = (CutOffCounts::default(), false);
    while begin.elapsed() < span {
        let requests = begin.elapsed();
        let (status, retry) = status(place, "/v1/tools", Some(revoked)).await?;
        seen.requests += 1;
        if status == 200 {
            seen.accepted_again += usize::from(seen.refused > 0);
            seen.accepted_until = requests;
        } else {
            // The previous call may have been the first one refused.
            seen.failed_early -= usize::from(seen.refused == 0 && has_just_failed);
            seen.refused += 1;
            seen.told += usize::from(status == 503 && retry);
        }
        has_just_failed = client.echo(echo).await.is_err();
        seen.answered += u64::from(!has_just_failed);
        if seen.refused == 0 {
            seen.early += 1;
            seen.failed_early += usize::from(has_just_failed);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(seen)
}

async fn readiness(node: &CutOffNode) -> Result<u16> {
    Ok(status(node.gateway.target.address, "/readyz", None).await?.0)
}

/// Returns the status of a response, and whether it has `Retry-After`.
async fn status(place: SocketAddr, path: &str, token: Option<&TokenSecret>) -> Result<(u16, bool)> {
    let mut rest = RestClient::open(place).await?;
    if let Some(token) = token {
        rest = rest.with_token(&token.secret)?;
    }
    let answer = rest.ask(Request::get(path).header(HOST, place.to_string()).body(Full::default())?).await?;
    Ok((answer.status().as_u16(), answer.headers().contains_key("retry-after")))
}

async fn becomes(place: SocketAddr, path: &str, token: Option<&TokenSecret>, wanted: u16) -> Result<()> {
    let begin = Instant::now();
    loop {
        let (status, _) = status(place, path, token).await?;
        if status == wanted {
            return Ok(());
        }
        anyhow::ensure!(begin.elapsed() < 5 * TIMEOUT, "{path} stays at {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the valid token's calls in the audit, once all are there or no more arrive.
async fn audited(rest: &mut RestClient, calls: u64, token: &str) -> Result<u64> {
    let begin = Instant::now();
    loop {
        let records = count(rest, token).await?;
        if records >= calls || begin.elapsed() > TIMEOUT {
            return Ok(records);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn count(rest: &mut RestClient, token: &str) -> Result<u64> {
    let (mut count, mut next) = (0, String::new());
    loop {
        let path = format!("/v1/audit?kind=call&outcome=ok&limit=1000{next}");
        let page: Value = serde_json::from_slice(&rest.get(&path).await?)?;
        let records = page["records"].as_array().context("an audit without records")?;
        count += u64::try_from(records.iter().filter(|record| record["token"] == token).count())?;
        match page["next"].as_u64() {
            Some(seq) => next = format!("&before={seq}"),
            None => return Ok(count),
        }
    }
}

fn no_panic(nodes: &[&CutOffNode]) -> Result<FaultCheck> {
    let mut panics = 0;
    for node in nodes {
        let log = std::fs::read_to_string(node.folder.path().join("stderr.log"))?;
        panics += log.lines().filter(|line| line.contains("panicked")).count();
    }
    Ok(FaultCheck::that("panics in the logs", "0", panics.to_string(), panics == 0))
}

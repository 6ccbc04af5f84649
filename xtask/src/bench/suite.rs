//! The suites of the comparison: the upstream behind the gateways, and the workload.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::drive::{BenchRequest, LoadResult, LoadSettings, drive};
use super::results::{BenchCase, BenchResults, STOLEN};
use super::running::RunningGateway;
use super::side::{GatewayRole, GatewayUnderTest, UpstreamKind};

pub(super) struct BenchSuite {
    pub(super) name: &'static str,
    pub(super) kind: UpstreamKind,
    pub(super) tools: usize,
    pub(super) work: Workload,
}

#[derive(Clone, Copy)]
pub(super) enum Workload {
    /// Calls with responses of a size from a number of clients.
    Calls(&'static [(usize, usize)]),
    /// The whole list, from a few clients.
    List,
    /// The gateway's own search.
    Search,
    /// From process start to the first list, in a used folder.
    Start,
    /// Memory with many sessions, each of which has listed the tools.
    Sessions,
    /// Memory before the first client.
    Idle,
}

pub(super) const SMALL: usize = 100;
pub(super) const MIDDLE: usize = 10_000;
pub(super) const LARGE: usize = 1_000_000;
pub(super) const SIZES: &[usize] = &[SMALL, MIDDLE, LARGE];
pub(super) const CLIENTS: &[usize] = &[1, 16, 64];
pub(super) const SESSIONS: &[usize] = &[100, 1000];
const ALL: &[(usize, usize)] = &[
    (SMALL, 1),
    (SMALL, 16),
    (SMALL, 64),
    (MIDDLE, 1),
    (MIDDLE, 16),
    (MIDDLE, 64),
    (LARGE, 1),
    (LARGE, 16),
    (LARGE, 64),
];
/// Large responses differ less by transport, so one number of clients is enough.
const FEWER: &[(usize, usize)] = &[(SMALL, 1), (SMALL, 16), (SMALL, 64), (MIDDLE, 16), (LARGE, 16)];

const LISTERS: usize = 4;
const SEARCHERS: usize = 4;
/// Starts per round; a slow gateway starts once.
const STARTS: usize = 5;
/// Timeout for opening the sessions.
const OPENING: Duration = Duration::from_secs(8);
/// Time limit for one gateway's calls in a round; cases not begun by then are skipped.
const TURN: Duration = Duration::from_secs(30);
/// Pause for startup work to finish.
const REST: Duration = Duration::from_millis(700);

pub(super) const SUITES: &[BenchSuite] = &[
    BenchSuite { name: "http", kind: UpstreamKind::Json, tools: 10, work: Workload::Calls(ALL) },
    BenchSuite { name: "sse", kind: UpstreamKind::Sse, tools: 10, work: Workload::Calls(FEWER) },
    BenchSuite { name: "stdio", kind: UpstreamKind::Stdio, tools: 10, work: Workload::Calls(FEWER) },
    BenchSuite { name: "list", kind: UpstreamKind::Json, tools: 1_000, work: Workload::List },
    BenchSuite { name: "search-1000", kind: UpstreamKind::Json, tools: 1_000, work: Workload::Search },
    BenchSuite { name: "search-10000", kind: UpstreamKind::Json, tools: 10_000, work: Workload::Search },
    BenchSuite { name: "cold", kind: UpstreamKind::Json, tools: 10, work: Workload::Start },
    BenchSuite { name: "sessions", kind: UpstreamKind::Json, tools: 10, work: Workload::Sessions },
    BenchSuite { name: "idle", kind: UpstreamKind::None, tools: 0, work: Workload::Idle },
];

pub(super) fn call_case(suite: &'static str, size: usize, clients: usize) -> BenchCase {
    (suite, format!("{size} B, {clients} clients"))
}

pub(super) fn plain_case(suite: &'static str) -> BenchCase {
    (suite, String::new())
}

impl BenchSuite {
    pub(super) fn searches(&self) -> bool {
        matches!(self.work, Workload::Search)
    }

    /// Returns how often a gateway is started in each round.
    pub(super) fn starts(&self, side: &GatewayUnderTest) -> usize {
        if matches!(self.work, Workload::Start) && !side.is_slow { STARTS } else { 1 }
    }

    /// Measures a newly started gateway.
    pub(super) async fn measure(
        &self,
        (side, running): (&GatewayUnderTest, &RunningGateway),
        (round, duration): (usize, Duration),
        results: &mut BenchResults,
    ) -> Result<()> {
        let case = plain_case(self.name);
        let settings = |clients| LoadSettings { clients, duration, warms_up: !side.is_slow };
        let (mut open, started) = (Vec::new(), Instant::now());
        match self.work {
            Workload::Calls(cases) => {
                let call_wrapper = running.call_wrapper().await?;
                for (size, clients) in cases {
                    if side.is_slow && *size == LARGE && *clients == 64 {
                        continue;
                    }
                    let case = call_case(self.name, *size, *clients);
                    if started.elapsed() > TURN {
                        results.fail(&case, side.name, "no time left");
                        continue;
                    }
                    let ask = BenchRequest::Echo(*size, call_wrapper.clone());
                    note(results, &case, (side, round), drive(running, &mut open, &ask, settings(*clients)).await);
                }
            }
            Workload::List => {
                let ask = BenchRequest::List(self.tools);
                note(results, &case, (side, round), drive(running, &mut open, &ask, settings(LISTERS)).await);
            }
            Workload::Search => {
                let Some(call_wrapper) = running.search else { return Ok(()) };
                let ask = BenchRequest::Search(call_wrapper);
                note(results, &case, (side, round), drive(running, &mut open, &ask, settings(SEARCHERS)).await);
            }
            Workload::Start => results.note(&case, side.name, "ms", round, running.start_ms),
            Workload::Idle => self.rest(running, &case, (side, round), results).await?,
            Workload::Sessions => {
                self.rest(running, &case, (side, round), results).await?;
                if running.has_sessions() {
                    sessions(running, &case, (side, round), results).await?;
                }
            }
        }
        Ok(())
    }

    async fn rest(
        &self,
        running: &RunningGateway,
        case: &BenchCase,
        (side, round): (&GatewayUnderTest, usize),
        results: &mut BenchResults,
    ) -> Result<()> {
        tokio::time::sleep(REST).await;
        if let Some(memory) = running.memory_mb()? {
            results.note(case, side.name, "idle MB", round, memory);
        }
        Ok(())
    }
}

fn note(
    results: &mut BenchResults,
    case: &BenchCase,
    (side, round): (&GatewayUnderTest, usize),
    seen: Result<LoadResult>,
) {
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return results.fail(case, side.name, &format!("{error:#}")),
    };
    results.note(case, side.name, "req/s", round, seen.load.per_second);
    results.note(case, side.name, "p50 ms", round, seen.load.p50_ms);
    results.note(case, side.name, "p99 ms", round, seen.load.p99_ms);
    results.note(case, side.name, STOLEN, round, seen.stolen);
    // The limit is the upstream itself, whose CPU time is not a cost.
    if let Some(cpu) = seen.cpu.filter(|_| side.role != GatewayRole::Limit) {
        results.note(case, side.name, "CPU s/10k", round, cpu);
    }
}

/// Opens sessions one after another and keeps them open.
async fn sessions(
    running: &RunningGateway,
    case: &BenchCase,
    (side, round): (&GatewayUnderTest, usize),
    results: &mut BenchResults,
) -> Result<()> {
    let started = Instant::now();
    let mut open = Vec::new();
    for (count, figure) in SESSIONS.iter().zip(["100 sessions MB", "1000 sessions MB"]) {
        while open.len() < *count {
            if started.elapsed() > OPENING {
                results.fail(case, side.name, &format!("{} sessions in {} s", open.len(), OPENING.as_secs()));
                return Ok(());
            }
            let mut link = running.link().await?;
            link.request("tools/list", "{}").await?;
            open.push(link);
        }
        tokio::time::sleep(REST).await;
        if let Some(memory) = running.memory_mb()? {
            results.note(case, side.name, figure, round, memory);
        }
    }
    Ok(())
}

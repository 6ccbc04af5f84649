//! The suites of the comparison: the upstream behind the gateways, and the workload.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::book::{Book, Case, STOLEN};
use super::drive::{Ask, Drive, Effort, drive};
use super::running::Running;
use super::side::{Kind, Role, Side};

pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) tools: usize,
    pub(super) work: Work,
}

#[derive(Clone, Copy)]
pub(super) enum Work {
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

pub(super) const SUITES: &[Suite] = &[
    Suite { name: "http", kind: Kind::Json, tools: 10, work: Work::Calls(ALL) },
    Suite { name: "sse", kind: Kind::Sse, tools: 10, work: Work::Calls(FEWER) },
    Suite { name: "stdio", kind: Kind::Stdio, tools: 10, work: Work::Calls(FEWER) },
    Suite { name: "list", kind: Kind::Json, tools: 1_000, work: Work::List },
    Suite { name: "search-1000", kind: Kind::Json, tools: 1_000, work: Work::Search },
    Suite { name: "search-10000", kind: Kind::Json, tools: 10_000, work: Work::Search },
    Suite { name: "cold", kind: Kind::Json, tools: 10, work: Work::Start },
    Suite { name: "sessions", kind: Kind::Json, tools: 10, work: Work::Sessions },
    Suite { name: "idle", kind: Kind::None, tools: 0, work: Work::Idle },
];

pub(super) fn call_case(suite: &'static str, size: usize, clients: usize) -> Case {
    (suite, format!("{size} B, {clients} clients"))
}

pub(super) fn plain_case(suite: &'static str) -> Case {
    (suite, String::new())
}

impl Suite {
    pub(super) fn searches(&self) -> bool {
        matches!(self.work, Work::Search)
    }

    /// Returns how often a gateway is started in each round.
    pub(super) fn starts(&self, side: &Side) -> usize {
        if matches!(self.work, Work::Start) && !side.is_slow { STARTS } else { 1 }
    }

    /// Measures a newly started gateway.
    pub(super) async fn measure(
        &self,
        (side, running): (&Side, &Running),
        (round, duration): (usize, Duration),
        book: &mut Book,
    ) -> Result<()> {
        let case = plain_case(self.name);
        let effort = |clients| Effort { clients, duration, warms_up: !side.is_slow };
        let (mut open, started) = (Vec::new(), Instant::now());
        match self.work {
            Work::Calls(cases) => {
                let around = running.around().await?;
                for (size, clients) in cases {
                    if side.is_slow && *size == LARGE && *clients == 64 {
                        continue;
                    }
                    let case = call_case(self.name, *size, *clients);
                    if started.elapsed() > TURN {
                        book.fail(&case, side.name, "no time left");
                        continue;
                    }
                    let ask = Ask::Echo(*size, around.clone());
                    note(book, &case, (side, round), drive(running, &mut open, &ask, effort(*clients)).await);
                }
            }
            Work::List => {
                let ask = Ask::List(self.tools);
                note(book, &case, (side, round), drive(running, &mut open, &ask, effort(LISTERS)).await);
            }
            Work::Search => {
                let Some(around) = running.search else { return Ok(()) };
                let ask = Ask::Search(around);
                note(book, &case, (side, round), drive(running, &mut open, &ask, effort(SEARCHERS)).await);
            }
            Work::Start => book.note(&case, side.name, "ms", round, running.start_ms),
            Work::Idle => self.rest(running, &case, (side, round), book).await?,
            Work::Sessions => {
                self.rest(running, &case, (side, round), book).await?;
                if running.has_sessions() {
                    sessions(running, &case, (side, round), book).await?;
                }
            }
        }
        Ok(())
    }

    async fn rest(
        &self,
        running: &Running,
        case: &Case,
        (side, round): (&Side, usize),
        book: &mut Book,
    ) -> Result<()> {
        tokio::time::sleep(REST).await;
        if let Some(memory) = running.memory_mb()? {
            book.note(case, side.name, "idle MB", round, memory);
        }
        Ok(())
    }
}

fn note(book: &mut Book, case: &Case, (side, round): (&Side, usize), seen: Result<Drive>) {
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return book.fail(case, side.name, &format!("{error:#}")),
    };
    book.note(case, side.name, "req/s", round, seen.load.per_second);
    book.note(case, side.name, "p50 ms", round, seen.load.p50_ms);
    book.note(case, side.name, "p99 ms", round, seen.load.p99_ms);
    book.note(case, side.name, STOLEN, round, seen.stolen);
    // The limit is the upstream itself, whose CPU time is not a cost.
    if let Some(cpu) = seen.cpu.filter(|_| side.role != Role::Limit) {
        book.note(case, side.name, "CPU s/10k", round, cpu);
    }
}

/// Opens sessions one after another and keeps them open.
async fn sessions(
    running: &Running,
    case: &Case,
    (side, round): (&Side, usize),
    book: &mut Book,
) -> Result<()> {
    let started = Instant::now();
    let mut open = Vec::new();
    for (count, figure) in SESSIONS.iter().zip(["100 sessions MB", "1000 sessions MB"]) {
        while open.len() < *count {
            if started.elapsed() > OPENING {
                book.fail(case, side.name, &format!("{} sessions in {} s", open.len(), OPENING.as_secs()));
                return Ok(());
            }
            let mut link = running.link().await?;
            link.request("tools/list", "{}").await?;
            open.push(link);
        }
        tokio::time::sleep(REST).await;
        if let Some(memory) = running.memory_mb()? {
            book.note(case, side.name, figure, round, memory);
        }
    }
    Ok(())
}

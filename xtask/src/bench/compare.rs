//! One comparison run: in each round and each suite, every gateway takes a turn in shuffled order, alone on the
//! machine, in front of the same upstream. A failing gateway is reported in the tables and does not end the run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::results::BenchResults;
use super::running::RunningGateway;
use super::side::{BenchUpstream, GatewayUnderTest, LaunchContext, LaunchPlan};
use super::suite::{BenchSuite, SUITES, Workload, plain_case};
use crate::rig::process::free_address;

pub(super) struct BenchComparison<'a> {
    pub(super) hikite: &'a Path,
    pub(super) sides: &'a [GatewayUnderTest],
    pub(super) only: Option<&'a str>,
    pub(super) rounds: usize,
    pub(super) duration: Duration,
}

/// A suite of this run, with its upstream and folder.
struct SuiteRun<'a> {
    suite: &'a BenchSuite,
    origin: BenchUpstream,
    folder: PathBuf,
}

impl BenchComparison<'_> {
    pub(super) async fn run(&self) -> Result<BenchResults> {
        let scratch = tempfile::tempdir()?;
        let mut stages = Vec::new();
        for suite in SUITES.iter().filter(|suite| self.wants(suite)) {
            let origin = BenchUpstream::start(suite.kind, suite.tools)?;
            stages.push(SuiteRun { suite, origin, folder: scratch.path().join(suite.name) });
        }
        let turns = self.rounds * stages.len() * self.sides.len();
        let (mut results, mut turn, started) = (BenchResults::default(), 0, Instant::now());
        for round in 0..self.rounds {
            for (number, stage) in stages.iter().enumerate() {
                for at in shuffled(self.sides.len(), round * stages.len() + number) {
                    let side = &self.sides[at];
                    turn += 1;
                    crate::print_error(&format!(
                        "round {} of {}, {}: {} ({} left, {} s so far)",
                        round + 1,
                        self.rounds,
                        stage.suite.name,
                        side.name,
                        turns - turn,
                        started.elapsed().as_secs(),
                    ));
                    if let Err(error) = self.turn(stage, side, round, &mut results).await {
                        results.fail(&plain_case(stage.suite.name), side.name, &format!("{error:#}"));
                    }
                }
            }
        }
        Ok(results)
    }

    fn wants(&self, suite: &BenchSuite) -> bool {
        self.only.is_none_or(|only| only == suite.name || (only == "search" && suite.searches()))
    }

    async fn turn(
        &self,
        stage: &SuiteRun<'_>,
        side: &GatewayUnderTest,
        round: usize,
        results: &mut BenchResults,
    ) -> Result<()> {
        let folder = stage.folder.join(side.name);
        std::fs::create_dir_all(&folder)?;
        let place = |listen| LaunchContext {
            origin: &stage.origin,
            folder: &folder,
            listen,
            hikite: self.hikite,
            searches: stage.suite.searches(),
        };
        // The first start creates data that later starts reuse.
        let first = usize::from(round == 0 && matches!(stage.suite.work, Workload::Start));
        for start in 0..stage.suite.starts(side) + first {
            let place = place(free_address()?);
            let launch = match (side.plan)(&place)? {
                LaunchPlan::Start(launch) => launch,
                LaunchPlan::Absent(why) => {
                    results.fail(&plain_case(stage.suite.name), side.name, why);
                    return Ok(());
                }
            };
            if matches!(stage.suite.work, Workload::Start) && launch.command.is_none() {
                results.fail(&plain_case(stage.suite.name), side.name, "is the upstream");
                return Ok(());
            }
            let running = RunningGateway::start(*launch, &place).await?;
            let seen = if start < first {
                Ok(())
            } else {
                stage.suite.measure((side, &running), (round, self.duration), results).await
            };
            running.stop().await;
            seen?;
        }
        Ok(())
    }
}

/// Returns the numbers below `count` in an order that differs by turn but is equal in every run.
fn shuffled(count: usize, seed: usize) -> Vec<usize> {
    let mixed = |at: usize| {
        let mut state = u64::try_from(seed * 64 + at).unwrap_or(0).wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|at| mixed(*at));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_one_turn_and_orders_differ() {
        let mut order = shuffled(11, 3);
        assert_ne!(order, shuffled(11, 4));
        order.sort_unstable();
        assert_eq!(order, (0..11).collect::<Vec<_>>());
    }
}

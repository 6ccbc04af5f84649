//! A property of users, tokens and accounts: after every step of a random sequence, the set of calls that succeed
//! equals a small model written from docs/permissions.md and docs/login.md. The model uses the REST API only; a failure
//! prints the seed and all steps.

mod act;
mod model;

use std::fmt::Write;

use hikite_testkit::api::MockApi;
use hikite_testkit::fixture::Fixture;
use hikite_testkit::gateway::{StatelessClient, StatelessEnvelope, TestGateway};
use serde_json::json;

use crate::identity::{as_bearer, project};
use crate::oauth::{TestBrowser, set_up};
use crate::{configured, http_fixture};
use model::{CallProbe, LifecycleModel};

const STEPS: usize = 60;

/// The program, its upstreams, and the model.
struct LifecycleWorld {
    gateway: TestGateway,
    model: LifecycleModel,
    random: SeededRandom,
    /// Steps so far, for the failure message.
    story: String,
    _fixture: Fixture,
    _vendor: MockApi,
    _owner: TestBrowser,
}

/// Random numbers of one seed, equal on every machine.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, bound: usize) -> usize {
        // Xorshift64*: uniform enough to choose steps.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).expect("31 bits") % bound
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { Some(&all[self.below(all.len())]) }
    }
}

impl LifecycleWorld {
    async fn new(seed: u64) -> Self {
        let (fixture, web) = http_fixture().await;
        let vendor = MockApi::start().await;
        let config = json!({
            "mcpServers": { "web": web },
            "modules": { "builtin": ["notion"] },
            "providers": { "notion": { "api": vendor.url(""), "oauth": {} } },
            "server": { "surface": ["direct", "modules"] },
            "limits": { "failed_logins": 0 },
        });
        let gateway = configured(config).await;
        let owner = set_up(&gateway).await;
        project(&gateway, "work", json!({ "members": ["nobody"], "permissions": { "deny": ["web:mirror"] } })).await;
        let random = SeededRandom(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let model = LifecycleModel::default();
        Self { gateway, model, random, story: String::new(), _fixture: fixture, _vendor: vendor, _owner: owner }
    }

    /// Tries every possible call over REST, and a random one of them over MCP.
    async fn compare(&mut self, seed: u64) {
        let probes = self.model.probes();
        let chosen = self.random.below(probes.len().max(1));
        for (at, probe) in probes.iter().enumerate() {
            let expected = self.model.succeeds(probe);
            let rest = over_rest(&self.gateway, probe).await;
            assert_eq!(rest.0, expected, "seed {seed}: {probe:?} over REST: {}\n{}", rest.1, self.story);
            if at == chosen {
                let mcp = over_mcp(&self.gateway, probe).await;
                assert_eq!(mcp.0, expected, "seed {seed}: {probe:?} over MCP: {}\n{}", mcp.1, self.story);
            }
        }
    }

    fn tell(&mut self, step: usize, what: &str) {
        writeln!(self.story, "{step:3}: {what}").expect("a string takes everything");
    }
}

async fn over_rest(gateway: &TestGateway, probe: &CallProbe) -> (bool, String) {
    let mut call = json!({ "name": probe.tool, "parameters": probe.arguments() });
    if let Some(account) = &probe.account {
        call["options"] = json!({ "account": account });
    }
    let reply = gateway.send(as_bearer(&probe.secret, "POST", "/v1/tools/call").json(call.to_string())).await;
    (reply.status == 200 && reply.value()["success"] == true, reply.text().to_owned())
}

async fn over_mcp(gateway: &TestGateway, probe: &CallProbe) -> (bool, String) {
    let (module, tool) = probe.tool.split_once(':').expect("a key");
    let mut arguments = json!({ "module": module, "tool": tool, "params": probe.arguments() });
    if let Some(account) = &probe.account {
        arguments["account"] = account.as_str().into();
    }
    let path = "/mcp?surface=modules";
    let client = StatelessClient::over_http(
        gateway.address(),
        path,
        Some(&probe.secret),
        StatelessEnvelope::default().unvalidated(),
    );
    let outcome = client.call("call", arguments).await;
    let fine = outcome.answer.as_ref().is_ok_and(|result| result["isError"] != true);
    (fine, outcome.text)
}

async fn holds(seed: u64) {
    let mut world = LifecycleWorld::new(seed).await;
    for step in 0..STEPS {
        let told = world.act().await;
        world.tell(step, &told);
        world.compare(seed).await;
    }
}

#[tokio::test]
async fn what_people_may_call_is_what_the_rules_say_after_any_sequence_of_changes() {
    for seed in 1..=3 {
        holds(seed).await;
    }
}

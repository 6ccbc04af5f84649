//! Benchmark of response shaping: the cost of projecting a service's response to the shape of its module. Prints the
//! same rows as the benchmark of `hikite-core`; without `--bench` everything runs once, as a smoke test.

#[path = "../../../hikite-core/benches/core/timer.rs"]
mod timer;

use std::hint::black_box;
use std::sync::Arc;

use hikite_core::compact::{Shape, compact, parse};
use hikite_core::credential::{Credential, CredentialProvider};
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::source::{BoxFuture, CallContext};
use hikite_egress::EgressClient;
use hikite_modules::{BUILTIN, Service, ServiceSettings, TextLanguage};
use serde_json::{Map, Value, json};

use timer::Timer;

/// Module, tool and recorded response.
const ANSWERS: [(&str, &str, &str); 5] = [
    ("github", "list_issues", include_str!("../../../hikite-testkit/fixtures/answers/github-issues.json")),
    ("github", "get_repo", include_str!("../../../hikite-testkit/fixtures/answers/github-repository.json")),
    ("github", "search_issues", include_str!("../../../hikite-testkit/fixtures/answers/github-search-issues.json")),
    ("notion", "search", include_str!("../../../hikite-testkit/fixtures/answers/notion-search.json")),
    ("notion", "list_users", include_str!("../../../hikite-testkit/fixtures/answers/notion-users.json")),
];

/// Credential provider without any credentials: nothing is sent from here.
#[derive(Debug)]
struct EmptyCredentialProvider;

impl CredentialProvider for EmptyCredentialProvider {
    fn knows(&self, _: &str) -> bool {
        false
    }

    fn credential<'a>(
        &'a self,
        _: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn renewed<'a>(
        &'a self,
        _: &'a str,
        _: &'a Credential,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn main() {
    let timer = Timer { measures: std::env::args().any(|argument| argument == "--bench") };
    let settings = ServiceSettings {
        client: EgressClient::new(),
        credential_provider: Arc::new(EmptyCredentialProvider),
        limits: Arc::new(Limits::default()),
        language: TextLanguage::English,
    };
    for (module, tool, answer) in ANSWERS {
        let file = BUILTIN.into_iter().find(|(name, _)| *name == module).expect("a module").1;
        let service = Service::read(file, &settings).expect("a service");
        row(timer, &service, tool, answer);
    }
}

#[expect(clippy::print_stdout, reason = "the rows are what was asked for")]
fn row(timer: Timer, service: &Service, tool: &str, answer: &str) {
    let raw = Raw::parse(answer.trim().to_owned()).expect("JSON");
    let value = parse(&raw);
    let project = |value: &Value| service.project(tool, Map::new(), value).expect("its shape");
    let text = |raw: &Raw| {
        let value = parse(raw);
        let shape = Shape::Prepared(Arc::new(project(&value)));
        compact(&value, Some(&shape), usize::MAX).text
    };
    let (plain, short) = (value.to_string().len(), text(&raw).len());
    let row = json!([
        format!("{}:{tool}", service.name),
        plain,
        short,
        timer.nanoseconds(|| black_box(parse(&raw))) / 1e3,
        timer.nanoseconds(|| black_box(project(&value))) / 1e3,
        timer.nanoseconds(|| black_box(text(&raw))) / 1e3,
    ]);
    if timer.measures {
        println!("shape {row}");
    }
}

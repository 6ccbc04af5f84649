//! hikite inside another program: a function and a source of its own, called on the path of every other tool.
//!
//! `cargo run --example embed` prints what they answer; `cargo run --example embed -- 127.0.0.1:7300` serves them.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hikite::config::{Config, ConfigEnvironment};
use hikite::{Builder, function};
use hikite_core::caller::SessionId;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceState};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let outside = ConfigEnvironment { env: &|_| None, read: &|path| std::fs::read_to_string(path) };
    // Nothing is stored between runs.
    let config = Config::parse(r#"{ "store": { "url": "sqlite::memory:" } }"#, Path::new("embed.json"), outside)?;
    let sum = json!({
        "name": "sum",
        "description": "Adds two numbers",
        "parameters": [
            { "name": "a", "type": "number", "description": "The first", "required": true },
            { "name": "b", "type": "number", "description": "The second", "default": 1 },
        ],
        "tags": ["math"],
    });
    let add = function(async |arguments: serde_json::Value| {
        let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
        Ok(json!({ "sum": number("a") + number("b") }))
    });
    let hikite = Builder::new(config)
        .module("clock", "Tells how long this program runs", Arc::new(Clock::default()))
        .tool(&sum, add)?
        .start()
        .await?;

    if let Some(address) = std::env::args().nth(1) {
        hikite.serve(tokio::net::TcpListener::bind(address).await?).await?;
    } else {
        let mut out = std::io::stdout();
        for (tool, parameters) in [("sum", json!({ "a": 41 })), ("clock:uptime", json!({}))] {
            let answer = hikite.execute(tool, &parameters, hikite::CallOptions::default()).await?;
            writeln!(out, "{tool}: {}", answer.value.as_str())?;
        }
        let refused = hikite.execute("sum", &json!({ "a": "many" }), hikite::CallOptions::default()).await;
        writeln!(out, "sum of many: {}", refused.expect_err("`many` is no number"))?;
    }
    hikite.stop().await;
    Ok(())
}

/// A source: a complete module with its own tool list and execution.
#[derive(Debug)]
struct Clock {
    started: std::time::Instant,
    listing: Arc<Listing>,
}

impl Default for Clock {
    fn default() -> Self {
        let uptime = json!({
            "name": "uptime",
            "description": "Seconds since the start",
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        });
        let tools = ListItem::read(ListKind::Tools, Raw::of(&uptime)).into_iter().collect();
        let listing = Arc::new(Listing { tools, ..Listing::default() });
        Self { started: std::time::Instant::now(), listing }
    }
}

impl Source for Clock {
    fn listing(&self) -> Option<Arc<Listing>> {
        Some(Arc::clone(&self.listing))
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn call(&self, _: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let seconds = self.started.elapsed().as_secs();
        Box::pin(async move {
            let text = Object::default().with("type", "text").with("text", seconds.to_string()).raw();
            Ok(Object::default().with("content", Raw::array([&text])).raw())
        })
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

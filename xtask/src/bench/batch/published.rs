//! Published SDK clients, each making the calls itself and letting hikite make them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::super::peer::{Install, Way};

pub(super) struct PublishedClient {
    pub(super) name: &'static str,
    pub(super) install: Install,
    /// File name and content of the script.
    script: (&'static str, &'static str),
}

/// Times of each turn in milliseconds.
#[derive(Deserialize)]
pub(super) struct BatchTimes {
    pub(super) direct: Vec<f64>,
    pub(super) batch: Vec<f64>,
}

pub(super) const ALL: &[PublishedClient] = &[
    PublishedClient {
        name: "TypeScript SDK",
        install: Install {
            name: "typescript-sdk",
            version: "1.32.2",
            way: Way::Npm("@modelcontextprotocol/sdk"),
            program: "node_modules",
        },
        script: ("client.mjs", include_str!("typescript.mjs")),
    },
    PublishedClient {
        name: "Python SDK",
        install: Install { name: "python-sdk", version: "1.28.1", way: Way::Python("mcp"), program: "bin/python" },
        script: ("client.py", include_str!("python.py")),
    },
];

impl PublishedClient {
    /// Runs the script; `None` if the SDK is not installed.
    pub(super) fn run(&self, folder: &Path, words: &[String]) -> Result<Option<BatchTimes>> {
        let Some(installed) = self.install.program()? else { return Ok(None) };
        let (file, text) = self.script;
        let script = folder.join(file);
        std::fs::write(&script, text)?;
        let mut command = if let Way::Npm(_) = self.install.way {
            let mut node = Command::new("node");
            node.arg("--no-warnings").args([script, installed]);
            node
        } else {
            let mut python = Command::new(installed);
            python.arg(script);
            python
        };
        let ended = command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        ensure!(ended.status.success(), "the client of the {} failed", self.name);
        serde_json::from_slice(&ended.stdout).map(Some).context("the client printed something else")
    }
}

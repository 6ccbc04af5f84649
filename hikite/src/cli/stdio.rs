//! `hikite stdio`: serves MCP on stdin and stdout.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use hikite_gateway::{Surface, Surfaces};

use super::{Common, program};
use crate::running::{Overrides, Running, settings};

#[derive(Debug, Args)]
pub(crate) struct Stdio {
    /// What the client is shown; may be repeated [default: as the config says]
    #[arg(long, value_name = "SURFACE", value_parser = surface)]
    surface: Vec<Surface>,
}

fn surface(name: &str) -> Result<Surface, String> {
    let known = Surface::ALL.map(Surface::name).join(", ");
    Surface::parse(name).ok_or_else(|| format!("not one of: {known}"))
}

impl Stdio {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let config = common.load()?;
        let overrides = Overrides { data: Some(config.data.clone()), stdio: true, ..Overrides::default() };
        let config = overrides.apply(config);
        let settings = settings(&config)?;
        let surfaces = if self.surface.is_empty() { settings.surfaces } else { Surfaces::of(self.surface) };
        let running = Running::start(config, settings, overrides, program()?).await?;
        let app = Arc::clone(&running.app);
        hikite_server::serve_stdio(app, surfaces, tokio::io::stdin(), tokio::io::stdout()).await;
        Ok(running.stop().await)
    }
}

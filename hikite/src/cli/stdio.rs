//! `hikite stdio`: serves MCP on stdin and stdout.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use hikite_gateway::{Surface, Surfaces};

use super::{GlobalArgs, program};
use crate::instance::{ConfigOverrides, Instance, settings};

#[derive(Debug, Args)]
pub(crate) struct Stdio {
    /// The surface; can be repeated [default: from the config]
    #[arg(long, value_name = "SURFACE", value_parser = surface)]
    surface: Vec<Surface>,
}

fn surface(name: &str) -> Result<Surface, String> {
    let known = Surface::ALL.map(Surface::name).join(", ");
    Surface::parse(name).ok_or_else(|| format!("not one of: {known}"))
}

impl Stdio {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = common.load()?;
        let overrides = ConfigOverrides { data: Some(config.data.clone()), stdio: true, ..ConfigOverrides::default() };
        let config = overrides.apply(config);
        let settings = settings(&config)?;
        let surfaces = if self.surface.is_empty() { settings.surfaces } else { Surfaces::of(self.surface) };
        let running = Instance::start(config, settings, overrides, program()?).await?;
        let app = Arc::clone(&running.app);
        hikite_server::serve_stdio(app, surfaces, tokio::io::stdin(), tokio::io::stdout()).await;
        Ok(running.stop().await)
    }
}

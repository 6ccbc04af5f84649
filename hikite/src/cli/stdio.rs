//! `hikite stdio`: MCP on stdin and stdout.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use hikite_gateway::{Surface, Surfaces};
use hikite_server::App;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::serve::{Overrides, settings, stop_on_signal, surfaces};
use super::{Common, program};
use crate::config::{Auth, Config};
use crate::house::House;
use crate::{reload, report, token};

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
        let config = Config { auth: Auth::None, ..common.load()? };
        token::make_folder(&config.data)?;
        let house = House::start(&config, program()?)?;
        let stopping = CancellationToken::new();
        let app = App::new(
            Arc::clone(&house.gateway),
            Arc::clone(&house.limits),
            settings(&config)?,
            stopping.clone(),
        );
        let surfaces = if self.surface.is_empty() { surfaces(&config) } else { Surfaces::of(self.surface) };
        let tasks = TaskTracker::new();
        tasks.spawn(stop_on_signal(stopping.clone())?);
        let overrides = Overrides::stdio(config.data.clone());
        tasks.spawn(reload::follow(
            config,
            overrides,
            Arc::clone(&house),
            Arc::clone(&app),
            stopping.clone(),
        ));
        report::when_known(&house, &stopping);
        hikite_server::serve_stdio(app, surfaces, tokio::io::stdin(), tokio::io::stdout()).await;
        stopping.cancel();
        house.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}

//! `hikite audit resume-trim`: confirms that the machine's clock is right, so that old records are removed again.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hikite_core::caller::Caller;
use hikite_core::json::Raw;
use hikite_core::source::CallOrigin;
use hikite_core::time::rfc3339;
use hikite_gateway::{machine_clock, record_admin};
use hikite_store::Store;
use serde_json::json;

use crate::cli::print;

#[derive(Debug, Args)]
pub(crate) struct ResumeTrim {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ResumeTrim {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let clock = machine_clock();
        let jump = store.clock().jump(&clock).await?;
        if jump.is_some() {
            let work = async { Ok(store.clock().confirm(&clock).await?) };
            let client = Raw::of(&json!({ "name": "hikite audit" }));
            let origin = CallOrigin { client: Some(client), ..CallOrigin::default() };
            record_admin(store, (&Caller::owner(), &origin), "audit.resume-trim", "", work).await?;
        }
        let now = rfc3339(clock.wall_ms);
        if self.json {
            print(&json!({ "resumed": jump.is_some(), "clock": now }).to_string());
        } else if jump.is_some() {
            print(&format!("The clock is confirmed: it is {now}. Old records are deleted again."));
        } else {
            print("Nothing is paused.");
        }
        Ok(ExitCode::SUCCESS)
    }
}

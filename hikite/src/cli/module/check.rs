//! `hikite module check`: reports every fault of module files, one per line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hikite_core::risk::Risk;
use hikite_core::violation::Violation;
use hikite_modules::{ModuleReview, review};
use serde_json::{Map, Value, json};

use super::super::{note, print};
use super::counted;
use crate::services::{self, line, place, text_of};

#[derive(Debug, Args)]
pub(crate) struct CheckFiles {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CheckFiles {
    pub(super) fn run(&self) -> ExitCode {
        let settings = services::settings(None);
        let (mut objects, mut bad) = (Vec::new(), false);
        for file in &self.files {
            let shown = file.display().to_string();
            let text = text_of(file).map_err(|wrong| vec![Violation::new("", wrong)]);
            let outcome = text.and_then(|text| review(&text, &settings));
            bad |= outcome.is_err();
            if self.json {
                objects.push(object(&shown, &outcome));
                continue;
            }
            match &outcome {
                Err(faults) => print(&services::shown(&shown, faults)),
                Ok(ModuleReview { service, warnings }) => {
                    for warning in warnings {
                        note(&format!("warning: {}", line(&shown, warning)));
                    }
                    print(&format!("ok: {shown}: {}", counted(service)));
                }
            }
        }
        if self.json {
            print(&Value::Array(objects).to_string());
        }
        ExitCode::from(u8::from(bad))
    }
}

/// Returns faults or warnings as JSON, each with its path.
pub(super) fn objects(faults: &[Violation]) -> Value {
    faults.iter().map(|fault| json!({ "at": place(fault), "message": fault.message })).collect()
}

fn object(file: &str, outcome: &Result<ModuleReview, Vec<Violation>>) -> Value {
    match outcome {
        Err(faults) => json!({ "file": file, "ok": false, "faults": objects(faults) }),
        Ok(ModuleReview { service, warnings }) => {
            let risks = Risk::ALL.iter().zip(service.risks());
            let risks: Map<String, Value> = risks.map(|(risk, count)| (risk.name().to_owned(), json!(count))).collect();
            let (resources, prompts) = service.extras();
            json!({
                "file": file, "ok": true, "name": &*service.name, "tools": risks, "resources": resources,
                "prompts": prompts, "warnings": objects(warnings),
            })
        }
    }
}

//! Audit checks of `hikite doctor`: durability, and records known to be missing.

use hikite_config::Config;
use hikite_gateway::{Durability, UNWRITTEN};

use super::{DoctorFinding, FindingLevel};

pub(super) fn findings(config: &Config) -> Vec<DoctorFinding> {
    let url = config.store_url();
    let mut findings = vec![durability(config)];
    let damage = hikite_store::known_damage(&url);
    if !damage.is_empty() {
        findings.push(DoctorFinding::bad("store", damage.join("\n  "), Some(hikite_store::damage_hint(&url))));
    }
    let unwritten = unwritten(config);
    if !unwritten.is_empty() {
        findings.push(DoctorFinding {
            what: "audit".into(),
            level: FindingLevel::Warning,
            text: format!(
                "records that could not be written to the store when hikite stopped: {}",
                unwritten.join(", ")
            ),
            hint: Some(
                "Read such a file with `hikite audit verify --file`, and keep it with your exports in another \
             location."
                    .into(),
            ),
        });
    }
    findings
}

fn durability(config: &Config) -> DoctorFinding {
    let Some(rules) = config.audit.rules() else {
        return DoctorFinding {
            what: "audit".into(),
            level: FindingLevel::Warning,
            text: "`audit.enabled` is false: nothing is recorded".into(),
            hint: None,
        };
    };
    let text = match rules.durability {
        Durability::Strict => "durability `strict`: a response is sent after its record is committed".to_owned(),
        Durability::Group => format!(
            "durability `group`: a crash may lose the records of the last {UNWRITTEN} responses; `strict` loses \
             none"
        ),
    };
    DoctorFinding::good("audit", text)
}

/// Returns the files with records that the store did not accept at shutdown.
fn unwritten(config: &Config) -> Vec<String> {
    let entries = std::fs::read_dir(&config.data).into_iter().flatten().flatten();
    let names = entries.filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(hikite_gateway::UNWRITTEN_FILE))
    });
    let mut names: Vec<String> = names.map(|entry| entry.path().display().to_string()).collect();
    names.sort();
    names
}

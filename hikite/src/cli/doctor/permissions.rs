//! The permissions of the files with secrets: nobody but their owner may read them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hikite_config::Config;

use super::{DoctorFinding, FindingLevel};
use crate::token;

/// Bits of the group and of all others.
const OTHERS: u32 = 0o077;

/// Reports files that others may read; with `fix`, closes them.
pub(super) fn findings(config: &Config, fix: bool) -> Vec<DoctorFinding> {
    let files = [config.data.clone(), token::path(&config.data), config.data.join("vault.key")];
    files.into_iter().filter_map(|path| finding(&path, fix)).collect()
}

fn finding(path: &PathBuf, fix: bool) -> Option<DoctorFinding> {
    let metadata = fs::metadata(path).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & OTHERS == 0 {
        return None;
    }
    let wanted = if metadata.is_dir() { 0o700 } else { 0o600 };
    let shown = path.display();
    if fix && close(path, wanted) {
        return Some(DoctorFinding::good("files", format!("{shown} was readable by others; fixed")));
    }
    Some(DoctorFinding {
        what: "files".into(),
        level: FindingLevel::Warning,
        text: format!("{shown} can be read by others (mode {mode:o})"),
        hint: Some(format!("Run `chmod {wanted:o} {shown}`, or `hikite doctor --fix`.")),
    })
}

fn close(path: &Path, mode: u32) -> bool {
    fs::set_permissions(path, Permissions::from_mode(mode)).is_ok()
}

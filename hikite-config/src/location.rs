//! Config file locations of other clients. Relative paths start at the working directory.

use std::path::{Path, PathBuf};

use super::import::ClientKind;

/// Returns the known locations. `os` is `std::env::consts::OS`; the files need not exist.
pub fn known_locations(home: &Path, os: &str) -> Vec<(ClientKind, PathBuf)> {
    let apps = match os {
        "macos" => home.join("Library/Application Support"),
        "windows" => home.join("AppData/Roaming"),
        _ => home.join(".config"),
    };
    vec![
        (ClientKind::ClaudeDesktop, apps.join("Claude/claude_desktop_config.json")),
        (ClientKind::ClaudeCode, home.join(".claude.json")),
        (ClientKind::ClaudeCode, ".mcp.json".into()),
        (ClientKind::Cursor, home.join(".cursor/mcp.json")),
        (ClientKind::Cursor, ".cursor/mcp.json".into()),
        (ClientKind::VsCode, apps.join("Code/User/mcp.json")),
        (ClientKind::VsCode, apps.join("Code/User/settings.json")),
        (ClientKind::VsCode, ".vscode/mcp.json".into()),
        (ClientKind::Windsurf, home.join(".codeium/windsurf/mcp_config.json")),
        (ClientKind::ModularMcp, "modular-mcp.json".into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_own_folder_for_settings() {
        for (os, expected) in [
            ("linux", "/h/.config/Claude/claude_desktop_config.json"),
            ("macos", "/h/Library/Application Support/Claude/claude_desktop_config.json"),
            ("windows", "/h/AppData/Roaming/Claude/claude_desktop_config.json"),
        ] {
            assert_eq!(known_locations(Path::new("/h"), os)[0].1, Path::new(expected));
        }
    }
}

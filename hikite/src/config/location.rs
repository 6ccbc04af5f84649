//! Config file locations of other clients. Relative paths start at the working directory.

use std::path::{Path, PathBuf};

use super::import::Kind;

/// Returns the known locations. `os` is `std::env::consts::OS`; the files need not exist.
pub fn known_locations(home: &Path, os: &str) -> Vec<(Kind, PathBuf)> {
    let apps = match os {
        "macos" => home.join("Library/Application Support"),
        "windows" => home.join("AppData/Roaming"),
        _ => home.join(".config"),
    };
    vec![
        (Kind::ClaudeDesktop, apps.join("Claude/claude_desktop_config.json")),
        (Kind::ClaudeCode, home.join(".claude.json")),
        (Kind::ClaudeCode, ".mcp.json".into()),
        (Kind::Cursor, home.join(".cursor/mcp.json")),
        (Kind::Cursor, ".cursor/mcp.json".into()),
        (Kind::VsCode, apps.join("Code/User/mcp.json")),
        (Kind::VsCode, apps.join("Code/User/settings.json")),
        (Kind::VsCode, ".vscode/mcp.json".into()),
        (Kind::Windsurf, home.join(".codeium/windsurf/mcp_config.json")),
        (Kind::ModularMcp, "modular-mcp.json".into()),
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

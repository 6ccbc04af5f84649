//! The programs that stdio servers start: whether they are installed, and which package has them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Programs that servers are started with, and how to install them on Debian and with Homebrew.
const PACKAGES: &[(&[&str], &str, &str)] = &[
    (&["npx", "npm", "node"], "apt install nodejs npm", "node"),
    (&["uvx", "uv"], "pipx install uv", "uv"),
    (&["python3", "python"], "apt install python3", "python"),
    (&["pipx"], "apt install pipx", "pipx"),
    (&["docker"], "apt install docker.io", "docker"),
    (&["podman"], "apt install podman", "podman"),
    (&["deno"], "npm install -g deno", "deno"),
    (&["bunx", "bun"], "npm install -g bun", "oven-sh/bun/bun"),
    (&["go"], "apt install golang-go", "go"),
    (&["java"], "apt install default-jre", "openjdk"),
    (&["dotnet"], "apt install dotnet-sdk-8.0", "dotnet"),
];

/// Returns how to install the program of a server, if it is not there. `path` is the server's own search path.
pub(super) fn missing(command: &str, path: Option<&str>) -> Option<String> {
    let path = path.map(OsString::from).or_else(|| env::var_os("PATH")).unwrap_or_default();
    if is_installed(command, &path) {
        return None;
    }
    let packages = PACKAGES.iter().find(|(programs, ..)| programs.contains(&command));
    Some(match packages {
        Some((_, debian, homebrew)) => format!("Install it: `{debian}`, or `brew install {homebrew}` with Homebrew."),
        None if command.contains('/') => "Correct `command` of the server in the config.".into(),
        None => {
            format!("Install `{command}`, or write its whole path as `command`; `command -v {command}` shows it.")
        }
    })
}

fn is_installed(command: &str, path: &OsStr) -> bool {
    if command.contains('/') {
        return Path::new(command).exists();
    }
    env::split_paths(path).map(|folder: PathBuf| folder.join(command)).any(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_with_its_package() {
        assert_eq!(missing("sh", None), None);
        assert_eq!(missing("/bin/sh", None), None);
        let hint = missing("npx", Some("/nowhere")).expect("nothing is there");
        assert_eq!(hint, "Install it: `apt install nodejs npm`, or `brew install node` with Homebrew.");
        assert!(missing("no-such-program", None).expect("missing").contains("`command -v no-such-program`"));
        assert!(missing("/no/such/program", None).expect("missing").contains("Correct `command`"));
    }
}

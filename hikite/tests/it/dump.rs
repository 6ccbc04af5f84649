//! Core dumps: the `/proc` entries of a process that is not dumpable belong to root, whoever started it, which these
//! tests check.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

/// An unprivileged user id.
const NOBODY: u32 = 65_534;

/// Returns the owner of the process's environment in `/proc` once it answers.
fn owner(program: &Path, folder: &Path, user: Option<u32>, variable: Option<&str>) -> u32 {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin").current_dir(folder);
    command.envs(variable.map(|value| ("HIKITE_DUMPABLE", value)));
    command.args(["stdio", "--data"]).arg(folder.join("data"));
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("hikite");
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{hello}").expect("written");
    let mut answer = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut answer).expect("an answer");
    assert!(answer.contains("serverInfo"), "{answer}");
    let owner = std::fs::metadata(format!("/proc/{}/environ", child.id())).expect("a process").uid();
    drop(stdin);
    child.wait().expect("an end");
    owner
}

#[test]
fn the_process_leaves_no_core_dump_unless_it_is_asked_to() {
    let program = Path::new(env!("CARGO_BIN_EXE_hikite"));
    // Accessible to other users, unlike this run's temporary folder.
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("open to all");
    let own = std::fs::metadata(folder.path()).expect("a folder").uid();
    let (program, user) = if own == 0 {
        // Everything of root's belongs to root: another user runs a copy in an accessible folder.
        let (copy, home) = (folder.path().join("hikite"), folder.path().join("home"));
        std::fs::copy(program, &copy).expect("a copy");
        std::fs::create_dir(&home).expect("a folder");
        chown(&home, Some(NOBODY), Some(NOBODY)).expect("theirs");
        (copy, Some(NOBODY))
    } else {
        std::fs::create_dir(folder.path().join("home")).expect("a folder");
        (program.to_owned(), None)
    };
    let home = folder.path().join("home");
    assert_eq!(owner(&program, &home, user, None), 0, "nobody looks into it");
    assert_eq!(owner(&program, &home, user, Some("0")), 0);
    assert_eq!(owner(&program, &home, user, Some("1")), user.unwrap_or(own), "for debuggers");
}

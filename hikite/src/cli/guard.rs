//! `hikite __guard PARENT[:FILES] -- COMMAND ARGS…`: the guard process between hikite and a stdio server. For
//! internal use. It bypasses the argument parser, so that the server's arguments reach the server unchanged.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};

#[derive(Debug)]
pub(crate) struct GuardArgs {
    parent: u32,
    /// Open-file limit of the server, if it differs from ours.
    files: Option<u64>,
    command: OsString,
    args: Vec<OsString>,
}

impl GuardArgs {
    /// Parses the arguments; `None` if this is not a guard process.
    pub(crate) fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        if args.nth(1)? != "__guard" {
            return None;
        }
        let parent = args.next()?;
        let parent = parent.to_str()?;
        let (parent, files) = match parent.split_once(':') {
            Some((parent, files)) => (parent.parse().ok()?, Some(files.parse().ok()?)),
            None => (parent.parse().ok()?, None),
        };
        let command = args.next().filter(|separator| separator == "--").and_then(|_| args.next())?;
        Some(Self { parent, files, command, args: args.collect() })
    }

    pub(crate) fn run(self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?;
        let code = runtime.block_on(hikite_upstream::guard(self.parent, self.files, self.command, self.args));
        Ok(ExitCode::from(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(words: &[&str]) -> Option<GuardArgs> {
        GuardArgs::from_args(words.iter().map(OsString::from))
    }

    #[test]
    fn the_arguments_of_a_server_are_its_own() {
        let guard = guard(&["hikite", "__guard", "7", "--", "server", "--config", "x", "-h", "--", "--log"]);
        let guard = guard.expect("a guard");
        assert_eq!((guard.parent, guard.command), (7, "server".into()));
        assert_eq!(guard.args, ["--config", "x", "-h", "--", "--log"]);
    }

    #[test]
    fn a_server_may_have_a_limit_of_its_own() {
        let limited = guard(&["hikite", "__guard", "7:1024", "--", "server"]).expect("a guard");
        assert_eq!((limited.parent, limited.files), (7, Some(1024)));
        assert_eq!(guard(&["hikite", "__guard", "7", "--", "server"]).expect("a guard").files, None);
        assert!(guard(&["hikite", "__guard", "7:x", "--", "server"]).is_none());
    }

    #[test]
    fn other_commands_are_not_the_guards() {
        assert!(guard(&["hikite"]).is_none());
        assert!(guard(&["hikite", "serve"]).is_none());
        assert!(guard(&["hikite", "__guard", "x", "--", "server"]).is_none());
    }
}

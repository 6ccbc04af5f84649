//! `hikite __guard PARENT -- COMMAND ARGS…`: what stands between hikite and a stdio server. Not for people, and
//! read without the parser for people: whatever the server's arguments are, they are the server's.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};

#[derive(Debug)]
pub(crate) struct Guard {
    parent: u32,
    command: OsString,
    args: Vec<OsString>,
}

impl Guard {
    /// `None` if the program was started for something else.
    pub(crate) fn asked_for(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        if args.nth(1)? != "__guard" {
            return None;
        }
        let parent = args.next()?.to_str()?.parse().ok()?;
        let command = args.next().filter(|separator| separator == "--").and_then(|_| args.next())?;
        Some(Self { parent, command, args: args.collect() })
    }

    pub(crate) fn run(self) -> Result<ExitCode> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
        let code = runtime.block_on(hikite_upstream::guard(self.parent, self.command, self.args));
        Ok(ExitCode::from(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(words: &[&str]) -> Option<Guard> {
        Guard::asked_for(words.iter().map(OsString::from))
    }

    #[test]
    fn the_arguments_of_a_server_are_its_own() {
        let guard = guard(&["hikite", "__guard", "7", "--", "server", "--config", "x", "-h", "--", "--log"]);
        let guard = guard.expect("a guard");
        assert_eq!((guard.parent, guard.command), (7, "server".into()));
        assert_eq!(guard.args, ["--config", "x", "-h", "--", "--log"]);
    }

    #[test]
    fn other_commands_are_not_the_guards() {
        assert!(guard(&["hikite"]).is_none());
        assert!(guard(&["hikite", "serve"]).is_none());
        assert!(guard(&["hikite", "__guard", "x", "--", "server"]).is_none());
    }
}

//! `hikite __jq BYTES SECONDS OUTPUT`: runs one untrusted jq program in a process that can be killed. For internal
//! use. Reads `PROGRAM NUL INPUT` and writes the output or an error; the exit code tells which. The process sets its
//! resource limits before it reads the program.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use hikite_modules::jq::{JqError, JqProgram};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Exit codes: the program does not compile, it failed on the input, its output is too long.
pub(crate) const COMPILE_ERROR: u8 = 3;
pub(crate) const RUNTIME_ERROR: u8 = 4;
pub(crate) const OUTPUT_TOO_LONG: u8 = 5;

/// stdin, stdout and stderr; nothing else may be opened.
const FILES: u64 = 3;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JqArgs {
    /// Memory limit, beyond what the process uses at start.
    bytes: u64,
    /// CPU time limit.
    seconds: u64,
    /// Maximum output size.
    output: usize,
}

impl JqArgs {
    /// Parses the arguments; `None` if this is not a jq process.
    pub(crate) fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        if args.nth(1)? != "__jq" {
            return None;
        }
        let mut number = || args.next()?.to_str()?.parse::<u64>().ok();
        let (bytes, seconds, output) = (number()?, number()?, number()?);
        Some(Self { bytes, seconds, output: usize::try_from(output).ok()? })
    }

    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.set_resource_limits().context("cannot set the resource limits")?;
        let mut sent = Vec::new();
        std::io::stdin().read_to_end(&mut sent).context("cannot read stdin")?;
        let end = sent.iter().position(|byte| *byte == 0).context("there is no program")?;
        let (output, code) = match outcome(&sent[..end], &sent[end + 1..], self.output) {
            Ok(output) => (output, ExitCode::SUCCESS),
            Err(JqError::Invalid(words)) => (words.into_bytes(), ExitCode::from(COMPILE_ERROR)),
            Err(JqError::Failed(words)) => (words.into_bytes(), ExitCode::from(RUNTIME_ERROR)),
            Err(JqError::TooLong) => (Vec::new(), ExitCode::from(OUTPUT_TOO_LONG)),
        };
        std::io::stdout().write_all(&output).context("cannot write to stdout")?;
        Ok(code)
    }

    fn set_resource_limits(&self) -> rustix::io::Result<()> {
        let most = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Core, most(0))?;
        setrlimit(Resource::Fsize, most(0))?;
        // The soft limit sends SIGXCPU, the hard limit SIGKILL.
        setrlimit(Resource::Cpu, Rlimit { current: Some(self.seconds), maximum: Some(self.seconds + 1) })?;
        setrlimit(Resource::Data, most(self.bytes.saturating_add(used_bytes("VmData:"))))?;
        setrlimit(Resource::As, most(self.bytes.saturating_add(used_bytes("VmSize:"))))?;
        setrlimit(Resource::Nofile, most(FILES))
    }
}

fn outcome(program: &[u8], input: &[u8], most: usize) -> Result<Vec<u8>, JqError> {
    let program = std::str::from_utf8(program).map_err(|_| JqError::Invalid("it is not UTF-8 text".into()))?;
    JqProgram::compile(program)?.run(input, most)
}

/// Returns the memory this process already uses, including the program text, in bytes. Only Linux reports it;
/// elsewhere the limit is less exact.
fn used_bytes(what: &str) -> u64 {
    let status_text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status_text.lines().find_map(|line| line.strip_prefix(what));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jq(words: &[&str]) -> Option<JqArgs> {
        JqArgs::from_args(words.iter().map(OsString::from))
    }

    #[test]
    fn it_is_asked_for_with_three_numbers_and_by_nobody_else() {
        let parsed = jq(&["hikite", "__jq", "1000", "3", "20"]);
        assert_eq!(parsed, Some(JqArgs { bytes: 1000, seconds: 3, output: 20 }));
        for words in [&["hikite"][..], &["hikite", "call"], &["hikite", "__jq"], &["hikite", "__jq", "1", "x", "2"]] {
            assert_eq!(jq(words), None, "{words:?}");
        }
    }

    #[test]
    fn a_program_that_is_no_text_is_refused() {
        let refused = outcome(b"\xff\xfe", b"null", 100);
        assert_eq!(refused, Err(JqError::Invalid("it is not UTF-8 text".into())));
    }
}

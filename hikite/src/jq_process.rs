//! Runs each jq program in a process of its own (`hikite __jq`), with an empty environment and limits on memory and
//! time. Concurrency limits are applied by the caller. Dropping the future kills the process.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::selector::JqRunner;
use hikite_core::source::BoxFuture;
use hikite_gateway::off_worker::run_blocking;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::cli::jq::{COMPILE_ERROR, OUTPUT_TOO_LONG, RUNTIME_ERROR};

/// Maximum bytes read from the process's stderr.
const STDERR_BYTES_MAX: u64 = 4096;

#[derive(Debug)]
pub(crate) struct JqProcesses {
    /// Path of the hikite binary.
    program: PathBuf,
    limits: Arc<Limits>,
}

/// Exit status and output of a jq process.
struct JqProcessOutput {
    status: ExitStatus,
    output: Vec<u8>,
    stderr_bytes: Vec<u8>,
}

impl JqProcesses {
    pub(crate) fn new(program: PathBuf, limits: Arc<Limits>) -> Self {
        Self { program, limits }
    }

    async fn run_program(&self, program: &str, input: &Raw) -> Result<Raw, Error> {
        if program.contains('\0') {
            return Err(wrong("it must not contain a NUL character"));
        }
        let mut child = self.start().map_err(|error| broken("The jq process cannot be started.", &error))?;
        let within = self.limits.jq_timeout;
        let Ok(end) = timeout(within, self.exchange_data(&mut child, program, input)).await else {
            // The process is killed and reaped before the error is returned.
            let _ = child.kill().await;
            return Err(self.timed_out());
        };
        self.read_result(end.map_err(|error| broken("The jq process cannot be used.", &error))?)
    }

    fn start(&self) -> std::io::Result<Child> {
        let limits = &self.limits;
        let seconds = limits.jq_timeout.as_secs() + u64::from(limits.jq_timeout.subsec_nanos() > 0) + 1;
        Command::new(&self.program)
            .arg("__jq")
            .args([limits.jq_bytes.to_string(), seconds.to_string(), limits.answer_bytes.to_string()])
            .env_clear()
            // The allocator would reserve a gigabyte, and the memory limit counts reserved memory.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }

    async fn exchange_data(&self, child: &mut Child, program: &str, input: &Raw) -> std::io::Result<JqProcessOutput> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            let Some(mut stdin) = stdin else { return };
            // The process may exit before it has read all input; its exit status says why.
            for part in [program.as_bytes(), b"\0", input.bytes()] {
                if stdin.write_all(part).await.is_err() {
                    return;
                }
            }
        };
        let (mut output, mut stderr_bytes) = (Vec::new(), Vec::new());
        // One byte over the limit, so that oversized output is detected.
        let most = self.limits.answer_bytes as u64 + 1;
        let read = async {
            let Some(stdout) = stdout else { return Ok(0) };
            stdout.take(most).read_to_end(&mut output).await
        };
        let listen = async {
            let Some(stderr) = stderr else { return Ok(0) };
            stderr.take(STDERR_BYTES_MAX).read_to_end(&mut stderr_bytes).await
        };
        let ((), read, heard) = tokio::join!(write, read, listen);
        read?;
        heard?;
        Ok(JqProcessOutput { status: child.wait().await?, output, stderr_bytes })
    }

    /// Converts the exit status and output into a result.
    fn read_result(&self, end: JqProcessOutput) -> Result<Raw, Error> {
        let JqProcessOutput { status, output, stderr_bytes } = end;
        let words = || String::from_utf8_lossy(&output).into_owned();
        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(0) => {
                let parsed = run_blocking(|| Raw::parse(output));
                return parsed.map_err(|error| broken("The jq process returned no JSON.", &error));
            }
            Some(COMPILE_ERROR) => return Err(wrong(&words())),
            Some(RUNTIME_ERROR) => return Err(Error::new(ErrorKind::Validation, format!("jq: {}", words()))),
            Some(OUTPUT_TOO_LONG) => return Err(self.output_too_long()),
            _ => {}
        }
        let stderr_bytes = String::from_utf8_lossy(&stderr_bytes);
        let signal = status.signal();
        if signal == Some(Signal::XCPU.as_raw()) || signal == Some(Signal::KILL.as_raw()) {
            return Err(self.timed_out());
        }
        if stderr_bytes.contains("overflowed its stack") || signal == Some(Signal::SEGV.as_raw()) {
            return Err(Error::new(
                ErrorKind::Validation,
                "jq: the recursion or the nesting of the program is too deep.",
            )
            .hint("Make sure that it ends, for example by using `map` or `reduce` over a list."));
        }
        if stderr_bytes.contains("memory allocation") || stderr_bytes.contains("capacity overflow") {
            return Err(self.out_of_memory());
        }
        Err(broken("The jq process crashed.", &format!("{status}: {}", stderr_bytes.trim())))
    }

    fn timed_out(&self) -> Error {
        let within = self.limits.jq_timeout.as_secs_f64();
        Error::new(ErrorKind::Validation, format!("jq: the program did not finish within {within} s."))
            .hint("Simplify the program, or select the needed fields first (`a,b.c`).")
    }

    fn out_of_memory(&self) -> Error {
        let most = self.limits.jq_bytes / (1024 * 1024);
        Error::new(ErrorKind::Validation, format!("jq: the program needs more memory than its {most} MiB."))
            .hint("Simplify the program, or let it keep less data. An administrator can raise `limits.jq_bytes`.")
    }

    fn output_too_long(&self) -> Error {
        let most = self.limits.answer_bytes;
        Error::new(ErrorKind::Validation, format!("jq: the output of the program is larger than {most} bytes."))
            .hint("Let it return less. An administrator can raise `limits.answer_bytes`.")
    }
}

impl JqRunner for JqProcesses {
    fn run(&self, program: Arc<str>, input: Raw) -> BoxFuture<'_, Result<Raw, Error>> {
        Box::pin(async move { self.run_program(&program, &input).await })
    }
}

fn wrong(words: &str) -> Error {
    Error::new(ErrorKind::Validation, format!("jq: the program is not valid: {words}"))
}

fn broken(what: &str, cause: &impl ToString) -> Error {
    Error::new(ErrorKind::Internal, what).because(cause.to_string())
}

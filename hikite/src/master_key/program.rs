//! Runs a program that prints a secret: without a shell, with a time limit. Its output is never logged.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hikite_core::secret::Secret;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Time limit, long enough to touch a hardware key.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum output, longer than any set of keys.
const OUTPUT_BYTES_MAX: usize = 4096;
/// Maximum characters of stderr in an error message.
const STDERR_CHARS_MAX: usize = 200;

/// Returns the output; `None` if the program fails silently, as lookups without a result do.
pub(super) async fn output(words: &[String], input: Option<&Secret>) -> Result<Option<Secret>> {
    let name = &words[0];
    let mut command = Command::new(name);
    command.args(&words[1..]).kill_on_drop(true);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{name}` for the vault key"))?;
    let work = async {
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.expose().as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let Ok(done) = tokio::time::timeout(TIMEOUT, work).await else {
        bail!("`{name}` did not finish within {} s.", TIMEOUT.as_secs());
    };
    let done = done.with_context(|| format!("cannot run `{name}` for the vault key"))?;
    let complaint = String::from_utf8_lossy(&done.stderr);
    let complaint: String = complaint.trim().chars().take(STDERR_CHARS_MAX).collect();
    if !done.status.success() {
        if complaint.is_empty() && done.stdout.is_empty() {
            return Ok(None);
        }
        bail!("`{name}` failed ({}): {complaint}", done.status);
    }
    if done.stdout.len() > OUTPUT_BYTES_MAX {
        bail!("`{name}` printed more than a key.");
    }
    match String::from_utf8(done.stdout) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Ok(Some(Secret::hidden(text.trim()))),
        Err(_) => bail!("`{name}` printed something that is not text."),
    }
}

//! Progress on stderr: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Duration after which progress is shown.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// Progress of many equal steps.
#[derive(Debug)]
pub(crate) struct StepProgress {
    what: String,
    total: usize,
    done: usize,
    started: Instant,
    bar: Option<ProgressBar>,
    is_shown: bool,
}

impl StepProgress {
    pub(crate) fn new(what: &str, total: usize) -> Self {
        Self { what: what.to_owned(), total, done: 0, started: Instant::now(), bar: None, is_shown: false }
    }

    /// Counts one step. Nothing is shown during the first second.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        if !self.is_shown && self.started.elapsed() >= SHOW_AFTER {
            self.is_shown = true;
            self.show();
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        }
    }

    fn show(&mut self) {
        if !std::io::stderr().is_terminal() {
            return note(&format!("{} {} …", self.what, self.total));
        }
        let bar = ProgressBar::new(self.total as u64);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta} left)") {
            bar.set_style(style);
        }
        bar.set_message(self.what.clone());
        self.bar = Some(bar);
    }
}

impl Drop for StepProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Prints a message to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

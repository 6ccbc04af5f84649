//! Progress of long operations: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::future::join_all;
use hikite_core::catalog::Module;
use hikite_core::source::SourceState;
use hikite_gateway::Gateway;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::cli::note;

/// The lines of this process that change. There is one terminal, so there is one list of them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Writes to the terminal above the lines that change.
pub(crate) fn above<T>(write: impl FnOnce() -> T) -> T {
    BARS.suspend(write)
}

/// Waits until every module has returned its lists or failed, and shows the progress.
pub(crate) async fn wait_for_all(gateway: &Gateway, limit: Duration) {
    let view = gateway.catalogs().owner_view();
    let missing: Vec<&Module> = view.modules().iter().filter(|module| module.listing.is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let waits = missing.iter().map(|module| wait(module, limit));
    join_all(waits).await;
    gateway.lookup().wait_for_lists(Duration::ZERO, |_| true).await;
}

/// Duration after which progress is shown.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// Runs the work, and shows a spinner if it takes long.
pub(crate) async fn with_spinner<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(SHOW_AFTER, &mut work).await {
        return done;
    }
    if !std::io::stderr().is_terminal() {
        note(&format!("{what} …"));
        return work.await;
    }
    let bar = ProgressBar::new_spinner().with_elapsed(SHOW_AFTER);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    let done = work.await;
    bar.finish_and_clear();
    done
}

/// Interval between progress lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the work, and shows its progress if it takes long. `how_far` returns the completed and the total count.
pub(crate) async fn with_progress<T>(
    what: &'static str,
    how_far: impl Fn() -> (u64, u64),
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(SHOW_AFTER, &mut work).await {
        return done;
    }
    let bar = std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new(0).with_elapsed(SHOW_AFTER).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} ({eta})") {
            bar.set_style(style);
        }
        bar
    });
    let pause = if bar.is_some() { SHOW_AFTER / 10 } else { LINE_INTERVAL };
    loop {
        let (done, total) = how_far();
        match &bar {
            Some(bar) => {
                bar.set_length(total);
                bar.set_position(done);
            }
            None => note(&format!("{what}: {done} of {total}")),
        }
        if let Ok(done) = tokio::time::timeout(pause, &mut work).await {
            bar.inspect(ProgressBar::finish_and_clear);
            return done;
        }
    }
}

/// Interval between checks of whether a server has started.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits for the first listing. The time limit is paused while the server is queued for starting.
async fn wait_for_list(module: &Module, limit: Duration) {
    let mut listing = module.source.first_listing();
    let mut left = limit;
    while !left.is_zero() {
        let step = left.min(POLL_INTERVAL);
        if tokio::time::timeout(step, &mut listing).await.is_ok() {
            return;
        }
        if !module.source.is_queued() {
            left -= step;
        }
    }
}

async fn wait(module: &Module, limit: Duration) {
    let started = Instant::now();
    let bar = std::io::stderr().is_terminal().then(|| {
        let bar = BARS.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {msg} ({elapsed})") {
            // The last sign stays when the server is known.
            bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏·"));
        }
        bar.set_prefix(module.name.to_string());
        bar.set_message("starting");
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    });
    wait_for_list(module, limit).await;
    let outcome = outcome(module);
    match bar {
        Some(bar) => bar.finish_with_message(outcome),
        None => note(&format!("{}: {outcome} ({:.1} s)", module.name, started.elapsed().as_secs_f64())),
    }
}

/// Tells what came of a start.
fn outcome(module: &Module) -> String {
    match (module.source.listing(), module.source.state()) {
        (_, SourceState::NeedsLogin { .. }) => {
            let hint = module.source.login_hint().unwrap_or_default();
            format!("needs a login. {hint}").trim_end().to_owned()
        }
        (Some(listing), _) => format!("{} tools", listing.tools.len()),
        (None, state) => match state.trouble() {
            Some(trouble) => format!("failed: {trouble}"),
            None => "still starting".to_owned(),
        },
    }
}

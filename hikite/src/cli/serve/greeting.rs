//! `hikite serve` on a terminal: a line per server that is not known yet, then where to go next.

use std::time::Duration;

use hikite_config::Config;

use crate::cli::GlobalArgs;
use crate::instance::Instance;
use crate::report::CatalogCounts;
use crate::{log, progress};

/// Time after which the block is shown, even if servers are still starting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shows how the servers start, and then the addresses and the next step.
pub(super) async fn show(common: &GlobalArgs, config: &Config, running: &Instance, setup_link: Option<&str>) {
    let gateway = &running.runtime.gateway;
    progress::wait_for_all(gateway, PATIENCE.min(running.runtime.limits.start_timeout)).await;
    let counts = CatalogCounts::of(&gateway.catalogs().owner_view());
    let text = text(&config.server.url(), config.oauth.is_some(), setup_link, &command(common), counts);
    progress::above(|| crate::cli::note(&text));
    log::end_start();
}

/// Returns the words with which the person started hikite, so that the commands shown work as they are.
fn command(common: &GlobalArgs) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "hikite".into());
    let flag = |name: &str, path: Option<&std::path::Path>| {
        path.map(|path| format!(" {name} {}", path.display())).unwrap_or_default()
    };
    format!("{program}{}{}", flag("--config", common.config.as_deref()), flag("--data", common.data.as_deref()))
}

fn text(url: &str, has_pages: bool, setup_link: Option<&str>, command: &str, counts: CatalogCounts) -> String {
    let mut lines = vec![String::new(), format!("hikite {} is running", env!("CARGO_PKG_VERSION")), String::new()];
    let mut line = |name: &str, text: String| lines.push(format!("  {name:9}{text}"));
    if has_pages {
        line("Pages", format!("{url}/ui"));
    }
    if let Some(link) = setup_link {
        line("Set up", link.to_owned());
        line("", "Nobody can log in yet. Open this address within a day to become the owner.".into());
    }
    line("Clients", format!("{command} connect claude-code   (`{command} connect --help` lists the others)"));
    let CatalogCounts { modules, usable, unconnected, tools } = counts;
    let waiting = modules - usable - unconnected;
    line("Tools", format!("{tools} tools of {usable} servers and services"));
    if waiting > 0 {
        line("", format!("{waiting} not answering: `{command} doctor` says why"));
    }
    if unconnected > 0 {
        line("", format!("{unconnected} more need an account: connect them in the pages"));
    }
    line("Stop", "Ctrl+C. With `--log info`, each call is logged.".into());
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_names_the_next_steps() {
        let counts = CatalogCounts { modules: 9, usable: 1, unconnected: 7, tools: 14 };
        let text = text("http://127.0.0.1:7300", true, Some("http://127.0.0.1:7300/setup?token=x"), "hikite", counts);
        insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r"

        hikite VERSION is running

          Pages    http://127.0.0.1:7300/ui
          Set up   http://127.0.0.1:7300/setup?token=x
                   Nobody can log in yet. Open this address within a day to become the owner.
          Clients  hikite connect claude-code   (`hikite connect --help` lists the others)
          Tools    14 tools of 1 servers and services
                   1 not answering: `hikite doctor` says why
                   7 more need an account: connect them in the pages
          Stop     Ctrl+C. With `--log info`, each call is logged.
        ");
    }
}

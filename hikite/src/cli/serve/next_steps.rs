//! The start of `hikite serve`: where to go next, and on a terminal before that a line per server that is not known yet.

use std::path::Path;
use std::time::Duration;

use hikite_config::{AuthSection, Config};

use crate::cli::{GlobalArgs, import, note};
use crate::instance::Instance;
use crate::report::CatalogCounts;
use crate::{log, progress};

/// Time after which the block is shown on a terminal, even if servers are still starting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shows how the servers start, on a terminal, and then the addresses and the next step.
pub(super) async fn show(common: &GlobalArgs, config: &Config, running: &Instance, setup_link: Option<&str>) {
    let gateway = &running.runtime.gateway;
    let importable = config.file.is_none().then(import::found_here).flatten();
    let mut next = NextSteps { config, setup_link, command: command(common), importable, counts: None };
    if !log::is_calm() {
        return note(&next.text());
    }
    progress::wait_for_all(gateway, PATIENCE.min(running.runtime.limits.start_timeout)).await;
    next.counts = Some(CatalogCounts::of(&gateway.catalogs().owner_view()));
    progress::above(|| note(&next.text()));
    log::end_start();
}

/// Returns the words with which the person started hikite, so that the commands shown work as they are.
fn command(common: &GlobalArgs) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "hikite".into());
    let flag = |name: &str, path: Option<&Path>| path.map(|path| format!(" {name} {}", path.display()));
    let flags = [flag("--config", common.config.as_deref()), flag("--data", common.data.as_deref())];
    flags.into_iter().flatten().fold(program, |command, flag| command + &flag)
}

/// The next steps of a person after the start.
struct NextSteps<'a> {
    config: &'a Config,
    setup_link: Option<&'a str>,
    command: String,
    /// Servers of other clients, if there is no config yet.
    importable: Option<String>,
    /// The log has the counts where there is no terminal.
    counts: Option<CatalogCounts>,
}

impl NextSteps<'_> {
    fn text(&self) -> String {
        let (url, command) = (self.config.server.url(), &self.command);
        let mut lines = vec![String::new(), format!("hikite {} is running", env!("CARGO_PKG_VERSION")), String::new()];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:9}{text}"));
        if self.config.oauth.is_some() {
            line("Pages", format!("{url}/ui"));
        }
        if let Some(link) = self.setup_link {
            line("Set up", link.to_owned());
            line("", "Nobody can log in yet. Open this address within a day to become the owner.".into());
        }
        line("Clients", format!("{command} connect claude-code"));
        line("", format!("`{command} connect --help` lists the other clients. Any client: {url}/mcp"));
        if matches!(self.config.auth, AuthSection::Token(None)) {
            line("Token", format!("`{command} token show` prints it, for clients that do not log in"));
        }
        if let Some(CatalogCounts { modules, usable, unconnected, tools }) = self.counts {
            line("Tools", format!("{tools} tools of {usable} servers and services"));
            let silent = modules - usable - unconnected;
            if silent > 0 {
                line("", format!("{silent} not answering: `{command} doctor` says why"));
            }
            if unconnected > 0 {
                line("", format!("{unconnected} more need an account: connect them in the pages"));
            }
            line("Stop", "Ctrl+C. With `--log info`, each call is logged.".into());
        }
        lines.push(String::new());
        lines.extend(self.importable.iter().map(|found| format!("{found}\n")));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use hikite_config::ConfigEnvironment;

    use super::*;

    #[test]
    fn the_block_names_the_next_steps() {
        let environment = ConfigEnvironment { env: &|_| None, read: &|path| std::fs::read_to_string(path) };
        let config = Config::parse("{}", Path::new("hikite.json"), environment).expect("defaults");
        let counts = CatalogCounts { modules: 9, usable: 1, unconnected: 7, tools: 14 };
        let link = "http://127.0.0.1:7300/setup?token=x";
        let next = NextSteps {
            config: &config,
            setup_link: Some(link),
            command: "hikite".into(),
            importable: None,
            counts: Some(counts),
        };
        insta::assert_snapshot!(next.text().replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r"

        hikite VERSION is running

          Pages    http://127.0.0.1:7300/ui
          Set up   http://127.0.0.1:7300/setup?token=x
                   Nobody can log in yet. Open this address within a day to become the owner.
          Clients  hikite connect claude-code
                   `hikite connect --help` lists the other clients. Any client: http://127.0.0.1:7300/mcp
          Token    `hikite token show` prints it, for clients that do not log in
          Tools    14 tools of 1 servers and services
                   1 not answering: `hikite doctor` says why
                   7 more need an account: connect them in the pages
          Stop     Ctrl+C. With `--log info`, each call is logged.
        ");
    }
}

//! The fixture upstream as a program. Stdout belongs to the stdio protocol; over HTTP it
//! carries one line, the URL, once the port is bound.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, ValueEnum};
use hikite_testkit::fixture::{
    Era, FixtureOptions, ImitatedService, PostResponseFormat, Revision, run_http, run_sse, run_stdio,
};

/// An MCP server for tests, well-behaved or not.
#[derive(Debug, Parser)]
struct FixtureArguments {
    #[command(flatten)]
    transport: TransportArguments,
    #[command(flatten)]
    quirks: Quirks,
    /// Speak the revisions with sessions, the one without (2026-07-28), or both.
    #[arg(long, value_enum, default_value_t = EraArgument::Legacy)]
    era: EraArgument,
    /// Offer what only scenarios of 2026-07-28 call, in any era.
    #[arg(long)]
    extended: bool,
    /// Serve skills (SEP-2640).
    #[arg(long)]
    skills: bool,
    /// Serve the lists of this file instead of the built-in catalogue.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Play this service instead of offering the built-in catalogue.
    #[arg(long, value_enum)]
    catalog: Option<CatalogArgument>,
    /// Entries per page of every list.
    #[arg(long, value_name = "N")]
    page: Option<usize>,
    /// Wait before answering any list.
    #[arg(long, value_name = "N", default_value_t = 0)]
    list_delay_ms: u64,
    /// How a POST is answered over streamable HTTP.
    #[arg(long, value_enum, default_value_t = ResponseFormatArgument::Sse)]
    answer: ResponseFormatArgument,
    /// The newest protocol revision offered.
    #[arg(long, default_value_t)]
    revision: Revision,
    /// HTTP: answer 401 unless this header has this value, as `Name: value`.
    #[arg(long, value_name = "HEADER", value_parser = parse_header)]
    require_header: Option<(String, String)>,
    /// Exit once so many tool calls have been answered.
    #[arg(long, value_name = "N")]
    die_after: Option<u64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TransportArguments {
    /// Speak over stdin and stdout.
    #[arg(long)]
    stdio: bool,
    /// Speak streamable HTTP on `/mcp` of this address.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Speak the HTTP+SSE of 2024-11-05 on `/sse` of this address.
    #[arg(long, value_name = "ADDR")]
    sse: Option<SocketAddr>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a quirk of its own")]
struct Quirks {
    /// Send `roots/list` after initialize if the client declared roots.
    #[arg(long)]
    ask_roots: bool,
    /// Offer `trigger-sampling` only to clients that declared sampling.
    #[arg(long)]
    conditional: bool,
    /// stdio: read everything, answer nothing.
    #[arg(long)]
    never_start: bool,
    /// HTTP: never answer a POST that holds no request.
    #[arg(long)]
    never_acknowledge: bool,
    /// Tell every client that the tools changed whenever they are listed.
    #[arg(long)]
    cry_wolf: bool,
    /// Offer tools that change what one session alone is offered.
    #[arg(long)]
    personal: bool,
    /// Take messages that break the published schema.
    #[arg(long)]
    unvalidated: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EraArgument {
    Legacy,
    Modern,
    Both,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CatalogArgument {
    Notion,
    Jira,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ResponseFormatArgument {
    Sse,
    Json,
    Mixed,
}

fn main() -> ExitCode {
    let arguments = FixtureArguments::parse();
    let runtime = tokio::runtime::Runtime::new().expect("a machine that runs tests has threads");
    let result = runtime.block_on(run(arguments));
    // A blocking read of stdin cannot be cancelled; waiting for it would keep the process alive.
    runtime.shutdown_background();
    result.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "a program says why it failed")]
fn report(error: &std::io::Error) -> ExitCode {
    let source = error.get_ref().and_then(std::error::Error::source);
    eprintln!("fixture-upstream: {error}{}", source.map(|source| format!(": {source}")).unwrap_or_default());
    ExitCode::FAILURE
}

async fn run(arguments: FixtureArguments) -> std::io::Result<()> {
    let TransportArguments { http, sse, .. } = arguments.transport;
    let options = FixtureOptions {
        era: match arguments.era {
            EraArgument::Legacy => Era::Legacy,
            EraArgument::Modern => Era::Modern,
            EraArgument::Both => Era::Both,
        },
        extended: arguments.extended,
        skills: arguments.skills,
        replay: arguments.replay,
        imitation: arguments.catalog.map(|catalog| match catalog {
            CatalogArgument::Notion => ImitatedService::Notion,
            CatalogArgument::Jira => ImitatedService::Jira,
        }),
        page: arguments.page,
        endless: None,
        picture_bytes: None,
        list_delay: Duration::from_millis(arguments.list_delay_ms),
        answer: match arguments.answer {
            ResponseFormatArgument::Sse => PostResponseFormat::Sse,
            ResponseFormatArgument::Json => PostResponseFormat::Json,
            ResponseFormatArgument::Mixed => PostResponseFormat::Mixed,
        },
        revision_max: arguments.revision,
        ask_roots: arguments.quirks.ask_roots,
        conditional: arguments.quirks.conditional,
        require_header: arguments.require_header,
        die_after: arguments.die_after,
        never_start: arguments.quirks.never_start,
        never_acknowledge: arguments.quirks.never_acknowledge,
        cry_wolf: arguments.quirks.cry_wolf,
        personal: arguments.quirks.personal,
        unvalidated: arguments.quirks.unvalidated,
    };
    match (http, sse) {
        (Some(address), _) => run_http(options, address, announce).await,
        (None, Some(address)) => run_sse(options, address, announce).await,
        (None, None) => run_stdio(options).await,
    }
}

#[expect(clippy::print_stdout, clippy::needless_pass_by_value, reason = "over HTTP stdout is free, and tells the port")]
fn announce(url: String) {
    println!("{url}");
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

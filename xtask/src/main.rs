//! Workspace tasks: `cargo xtask tidy` checks project rules that no lint covers, `bench` measures the program, `faults`
//! injects faults, `instructions` counts the instructions per call, `vectors` recomputes the encoder's vectors, `dist` makes
//! the packages.

mod bench;
mod dist;
mod faults;
mod instructions;
mod rig;
mod tidy;
mod vectors;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "usage: cargo xtask tidy
       cargo xtask bench [--seconds N] [--rounds N] [--only SUITE] [--peers A,B] [--binary FILE] [--json FILE] [--write]
       cargo xtask bench --install-peers [--peers A,B]
       cargo xtask faults [--list | --short] [--only NAME]… [--seconds N] [--binary FILE] [--json FILE]
       cargo xtask instructions [--binary FILE] [--json FILE]
       cargo xtask vectors
       cargo xtask dist [--binary FILE]… [--out FOLDER]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy"] => tidy::run(),
        ["bench", options @ ..] => bench::run(options),
        ["faults", options @ ..] => faults::run(options),
        ["instructions", options @ ..] => instructions::run(options),
        ["vectors"] => vectors::run(),
        ["dist", options @ ..] => dist::run(options),
        ["floor", options @ ..] => bench::floor::serve(options),
        ["upstream", options @ ..] => rig::upstream::serve(options),
        _ => {
            print_error(USAGE);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the one place that says what went wrong")]
fn print_error(text: &str) {
    eprintln!("{text}");
}

#[expect(clippy::print_stdout, reason = "the one place that prints what was asked for")]
fn print(text: &str) {
    println!("{text}");
}

/// Returns the workspace folder, independent of the current directory.
fn root() -> Result<std::path::PathBuf> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Into::into).ok_or_else(|| anyhow::anyhow!("xtask is not in a workspace"))
}

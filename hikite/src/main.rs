//! The `hikite` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    hikite::cli::run()
}

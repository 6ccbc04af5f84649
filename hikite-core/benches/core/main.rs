//! Costs of the innermost parts of a call: checking its arguments, finding its tool by name or by a query,
//! planning many calls at once, and writing answers as TOON. `cargo bench` prints each row as a JSON array behind the name
//! of its table, for `cargo xtask bench`; without `--bench` everything runs once, so that it is known to work.

mod catalog;
mod check;
mod plan;
mod search;
mod timer;
mod toon;

use timer::Timer;

fn main() {
    let timer = Timer { measures: std::env::args().any(|argument| argument == "--bench") };
    let tables = [
        ("check", check::rows(timer)),
        ("catalog", catalog::rows(timer)),
        ("search", search::rows(timer)),
        ("plan", plan::rows(timer)),
        ("toon", toon::rows(timer)),
    ];
    for (table, rows) in tables {
        for row in rows.into_iter().filter(|_| timer.measures) {
            print(table, &row);
        }
    }
}

#[expect(clippy::print_stdout, reason = "the rows are what was asked for")]
fn print(table: &str, row: &serde_json::Value) {
    println!("{table} {row}");
}

//! Measures the time to encode a text: `cargo run --release --package hikite-encoder --example speed`.
#![expect(clippy::print_stdout, reason = "what it is for")]

use std::time::Instant;

use hikite_core::search::encoder::Encoder;
use hikite_encoder::SentenceEncoder;

const QUESTION: &str = "show me the open issues of my repository that mention search";
const CLAUSES: &str = "次の会議の予定をカレンダーに追加して、参加者にメールで知らせて";
const TOOL: &str = "create or update file: Create or update a single file in a repository. If updating, you must provide \
    the SHA of the file you want to update. Use this tool to create or update a file in a remote repository; do not use \
    it for local file operations. The content is written as it is, and a commit with the given message is made on the \
    branch that is named. Fails if the branch does not exist.";

fn main() {
    let encoder = SentenceEncoder::new();
    let start = Instant::now();
    encoder.question(QUESTION);
    println!("the first text, with all that is unpacked: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    for (name, text) in [("question", QUESTION), ("Japanese question", CLAUSES), ("tool", TOOL)] {
        let mut times: Vec<f64> = (0..101)
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(encoder.tool(text));
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name}: median {:.2} ms, best {:.2} ms", times[50], times[0]);
    }
}

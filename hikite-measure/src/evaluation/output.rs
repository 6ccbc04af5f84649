//! Formats evaluation rows: JSON for programs, a table for people.

use std::fmt::Write;

use hikite_core::search::quality::{DEPTHS, RankingQuality};
use serde_json::{Value, json};

use super::EvaluationRow;

/// Returns the rows as a JSON array.
pub fn object(rows: &[EvaluationRow]) -> Value {
    rows.iter().map(row_object).collect()
}

/// Formats the rows as a table.
pub fn table(rows: &[EvaluationRow]) -> String {
    let width = rows.iter().map(|row| row.set.chars().count()).max().unwrap_or(0).max(3);
    let mut text = format!(
        "{:width$}  tools  questions  provider   memory    R@1   R@5  R@10  hit@1 hit@5 hit@10  nDCG@10   MRR    ECE   p50 ms  p99 ms",
        "set"
    );
    for row in rows {
        let RankingQuality { recall, hit, ndcg, reciprocal } = row.quality;
        let memory = row.memory.map_or("-".to_owned(), |count| count.to_string());
        let _ = write!(
            text,
            "\n{:width$}  {:5}  {:9}  {:9}  {memory:>6}  {:5.3} {:5.3} {:5.3}  {:5.3} {:5.3}  {:5.3}    {ndcg:5.3}  {reciprocal:5.3}  {:5.3}  {:7.2} {:7.2}",
            row.set,
            row.tools,
            row.questions,
            row.provider.word(),
            recall[0],
            recall[1],
            recall[2],
            hit[0],
            hit[1],
            hit[2],
            row.calibration_error,
            row.median.as_secs_f64() * 1e3,
            row.p99.as_secs_f64() * 1e3,
        );
    }
    text
}

fn row_object(row: &EvaluationRow) -> Value {
    let RankingQuality { recall, hit, ndcg, reciprocal } = row.quality;
    let at =
        |values: [f64; 3]| DEPTHS.iter().zip(values).map(|(depth, value)| (depth.to_string(), value.into())).collect();
    let (recall, hit): (serde_json::Map<_, _>, serde_json::Map<_, _>) = (at(recall), at(hit));
    json!({
        "set": row.set, "tools": row.tools, "questions": row.questions, "provider": row.provider.word(),
        "memory": row.memory, "recall": recall, "hit": hit, "ndcg10": ndcg, "mrr": reciprocal, "calibrationError": row.calibration_error,
        "p50Ms": row.median.as_secs_f64() * 1e3, "p99Ms": row.p99.as_secs_f64() * 1e3,
    })
}

//! Relevance of a hit, 0 to 1. Scores only rank hits against each other; relevance measures each against the query:
//!
//! - words: impact of the query's terms, as a share of the highest possible impact;
//! - vectors: cosine similarity, scaled so that 0.1 becomes 0 and 0.7 becomes 1;
//! - memory: similarity of a remembered query that led to the tool;
//! - combined: `1 - (1 - words)(1 - vectors)(1 - memory)`, and 1 for a tool mentioned by name. Where that would
//!   increase from one hit to the next, adjacent hits share their mean.

/// Hits with a lower relevance do not fit: they share a common word or a general topic with the query.
pub const RELEVANCE_MIN: f64 = 0.2;
/// Most unrelated tools have a lower similarity.
const SIMILARITY_LOW: f32 = 0.1;
/// Most tools that match the wording of a query have a higher similarity.
const SIMILARITY_HIGH: f32 = 0.7;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HitEvidence {
    /// 0 to 1.
    pub(super) words: f32,
    /// Cosine similarity.
    pub(super) similarity: Option<f32>,
    /// 0 to 1.
    pub(super) memory: f32,
    pub(super) is_named: bool,
}

impl HitEvidence {
    fn sum(self) -> f64 {
        if self.is_named {
            return 1.0;
        }
        let meaning = self
            .similarity
            .map_or(0.0, |similarity| (similarity - SIMILARITY_LOW) / (SIMILARITY_HIGH - SIMILARITY_LOW));
        let complements = [self.words, meaning, self.memory].map(|sign| 1.0 - f64::from(sign.clamp(0.0, 1.0)));
        1.0 - complements.iter().product::<f64>()
    }
}

/// Returns the relevance of hits in rank order.
pub(super) fn relevance(hits: &[HitEvidence]) -> Vec<f64> {
    // Isotonic regression (pool adjacent violators): a block with a higher mean than its predecessor is merged into it.
    let mut blocks: Vec<(f64, usize)> = Vec::with_capacity(hits.len());
    for hit in hits {
        let mut block = (hit.sum(), 1);
        while let Some((sum, count)) = blocks.pop_if(|before| mean(*before) < mean(block)) {
            block = (block.0 + sum, block.1 + count);
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|block| std::iter::repeat_n(rounded(mean(block)), block.1)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of hits stay far below 2^52")]
fn mean((sum, count): (f64, usize)) -> f64 {
    sum / count as f64
}

/// Rounds to three digits; more would suggest false precision.
fn rounded(relevance: f64) -> f64 {
    (relevance * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: f32) -> HitEvidence {
        HitEvidence { words, ..HitEvidence::default() }
    }

    #[test]
    fn it_never_rises_from_one_hit_to_the_next() {
        let found = relevance(&[0.5, 0.8, 0.2, 0.4, 0.1].map(words));
        assert_eq!(found, [0.65, 0.65, 0.3, 0.3, 0.1]);
        assert_eq!(relevance(&[]), [0.0; 0]);
    }

    #[test]
    fn it_says_how_much_speaks_for_a_hit_at_all() {
        let one = |evidence: HitEvidence| relevance(&[evidence])[0];
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 2e-3, "{value}");
        near(one(HitEvidence::default()), 0.0);
        near(one(HitEvidence { similarity: Some(0.05), ..words(0.0) }), 0.0);
        near(one(HitEvidence { similarity: Some(0.4), ..words(0.5) }), 0.75);
        near(one(HitEvidence { similarity: Some(1.0), ..words(0.0) }), 1.0);
        near(one(HitEvidence { memory: 0.5, ..words(0.5) }), 0.75);
        near(one(HitEvidence { is_named: true, ..words(0.0) }), 1.0);
    }
}

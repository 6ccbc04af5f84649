//! Relevance of a hit: an estimate, 0 to 1, of how likely it is the right tool. Scores only rank hits against each other.
//!
//! - vectors: a logistic function of the cosine similarity and of its distance from the best one, fitted on the
//!   development sets (`docs/search.md` has its error);
//! - words, where there are no vectors: impact of the query's terms, as a share of the highest possible impact;
//! - memory: similarity of a remembered query that led to the tool;
//! - combined: `1 - (1 - vectors or words)(1 - memory)`, and 1 for a tool mentioned by name. Where that would increase
//!   from one hit to the next, adjacent hits share their mean.

/// If the best hit has a lower relevance, nothing fits. Requests for something that a server does not offer are mostly
/// below, right tools rarely.
pub const RELEVANCE_MIN: f64 = 0.1;
/// Further hits with a lower relevance are far behind the best one.
const FURTHER_MIN: f64 = 0.01;

/// The logistic function of similarity: its offset and the weights of the similarity and of the distance.
const OFFSET: f64 = -4.08;
const SIMILARITY: f64 = 6.47;
const DISTANCE: f64 = 20.7;

/// Returns how many of the hits fit, from their relevance in rank order.
pub fn fitting(relevance: impl IntoIterator<Item = f64>) -> usize {
    let mut least = RELEVANCE_MIN;
    let fits = |relevance: &f64| *relevance >= std::mem::replace(&mut least, FURTHER_MIN);
    relevance.into_iter().take_while(fits).count()
}

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
    /// Returns the relevance by itself; `best` is the highest similarity of all hits.
    fn relevance(self, best: f32) -> f64 {
        if self.is_named {
            return 1.0;
        }
        let evidence = match self.similarity {
            Some(similarity) => {
                let distance = f64::from(best - similarity);
                1.0 / (1.0 + (-OFFSET - SIMILARITY * f64::from(similarity) + DISTANCE * distance).exp())
            }
            None => f64::from(self.words.clamp(0.0, 1.0)),
        };
        1.0 - (1.0 - evidence) * (1.0 - f64::from(self.memory.clamp(0.0, 1.0)))
    }
}

/// Returns the relevance of hits in rank order.
pub(super) fn relevance(hits: &[HitEvidence]) -> Vec<f64> {
    let best = hits.iter().filter_map(|hit| hit.similarity).fold(0.0, f32::max);
    // Isotonic regression (pool adjacent violators): a block with a higher mean than its predecessor is merged into it.
    let mut blocks: Vec<(f64, usize)> = Vec::with_capacity(hits.len());
    for hit in hits {
        let mut block = (hit.relevance(best), 1);
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
        near(one(words(0.5)), 0.5);
        near(one(HitEvidence { similarity: Some(0.3), ..words(0.5) }), 0.105);
        near(one(HitEvidence { similarity: Some(0.7), ..words(0.0) }), 0.611);
        near(one(HitEvidence { memory: 0.5, ..words(0.5) }), 0.75);
        near(one(HitEvidence { is_named: true, ..words(0.0) }), 1.0);
        let similar = |similarity| HitEvidence { similarity: Some(similarity), ..words(0.0) };
        let found = relevance(&[0.6, 0.5].map(similar));
        near(found[0], 0.451);
        near(found[1], 0.052);
    }

    #[test]
    fn nothing_fits_if_the_best_does_not() {
        assert_eq!(fitting([]), 0);
        assert_eq!(fitting([0.09, 0.08]), 0);
        assert_eq!(fitting([0.5, 0.02, 0.009]), 2);
    }
}

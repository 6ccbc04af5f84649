//! Ranking quality against human judgements: recall, hit rate, nDCG and reciprocal rank.

/// Quality measures, each 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankingQuality {
    /// Recall: share of the relevant documents among the first 1, 5 and 10.
    pub recall: [f64; 3],
    /// Hit rate: share of queries with a relevant document among the first 1, 5 and 10.
    pub hit: [f64; 3],
    /// Normalised discounted cumulative gain of the first ten.
    pub ndcg: f64,
    /// Reciprocal rank of the first relevant document.
    pub reciprocal: f64,
}

/// Cut-offs of `recall` and `hit`.
pub const DEPTHS: [usize; 3] = [1, 5, 10];
/// Cut-off of nDCG.
const NDCG_DEPTH: usize = 10;

impl RankingQuality {
    /// Measures one ranking, best first. `right` holds a grade for each relevant document, 1 where judgements are
    /// binary.
    pub fn of<T: PartialEq>(ranking: &[T], right: &[(T, f64)]) -> Self {
        let grade = |answer: &T| right.iter().find(|(is, _)| is == answer).map_or(0.0, |(_, grade)| *grade);
        let grades: Vec<f64> = ranking.iter().map(grade).collect();
        let found = DEPTHS.map(|depth| count(grades.iter().take(depth).filter(|grade| **grade > 0.0).count()));
        let mut ideal: Vec<f64> = right.iter().map(|(_, grade)| *grade).collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let best = dcg(&ideal);
        Self {
            recall: found.map(|found| found / count(right.len()).max(1.0)),
            hit: found.map(|found| found.min(1.0)),
            ndcg: if best > 0.0 { dcg(&grades) / best } else { 0.0 },
            reciprocal: grades.iter().position(|grade| *grade > 0.0).map_or(0.0, |at| 1.0 / count(at + 1)),
        }
    }

    /// Returns the mean over many rankings; zeros if there are none.
    pub fn average(all: &[Self]) -> Self {
        let mean = |part: &dyn Fn(&Self) -> f64| all.iter().map(part).sum::<f64>() / count(all.len()).max(1.0);
        Self {
            recall: std::array::from_fn(|at| mean(&|one| one.recall[at])),
            hit: std::array::from_fn(|at| mean(&|one| one.hit[at])),
            ndcg: mean(&|one| one.ndcg),
            reciprocal: mean(&|one| one.reciprocal),
        }
    }
}

fn dcg(grades: &[f64]) -> f64 {
    grades.iter().take(NDCG_DEPTH).enumerate().map(|(at, grade)| grade / count(at + 2).log2()).sum()
}

#[expect(clippy::cast_precision_loss, reason = "places and counts stay far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn a_ranking_is_measured_as_by_hand() {
        let quality = RankingQuality::of(&["a", "b", "c", "d"], &[("b", 2.0), ("d", 1.0), ("z", 1.0)]);
        near(quality.recall[0], 0.0);
        near(quality.recall[1], 2.0 / 3.0);
        near(quality.hit[1], 1.0);
        near(quality.reciprocal, 0.5);
        let best = 2.0 + 1.0 / 3_f64.log2() + 0.5;
        near(quality.ndcg, (2.0 / 3_f64.log2() + 1.0 / 5_f64.log2()) / best);
    }

    #[test]
    fn the_best_ranking_is_one_and_nothing_found_is_zero() {
        let best = RankingQuality::of(&["a", "b"], &[("a", 2.0), ("b", 1.0)]);
        near(best.ndcg, 1.0);
        near(best.recall[1], 1.0);
        assert_eq!(RankingQuality::of(&[], &[("a", 1.0)]), RankingQuality::default());
        near(RankingQuality::average(&[best, RankingQuality::default()]).ndcg, 0.5);
        assert_eq!(RankingQuality::average(&[]), RankingQuality::default());
    }
}

//! The vectors of all documents in one flat array, so that a question is held against them in one pass.

use super::encoder::Vector;

#[derive(Clone, Debug, Default)]
pub(super) struct Meaning {
    /// The model that made the vectors.
    model: String,
    dimension: usize,
    values: Vec<i8>,
    /// One over the length of each vector; zero where there is none yet.
    scales: Vec<f32>,
}

impl Meaning {
    pub(super) fn none(len: usize) -> Self {
        Self { scales: vec![0.0; len], ..Self::default() }
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn is_known(&self, at: usize) -> bool {
        self.scales[at] > 0.0
    }

    pub(super) fn count(&self) -> usize {
        self.scales.iter().filter(|scale| **scale > 0.0).count()
    }

    /// The same for other documents; `from` says where each of them stood before.
    pub(super) fn moved(&self, len: usize, from: impl Fn(usize) -> Option<usize>) -> Self {
        let mut moved = Self {
            model: self.model.clone(),
            dimension: self.dimension,
            values: vec![0; len * self.dimension],
            scales: vec![0.0; len],
        };
        for at in 0..len {
            if let Some(from) = from(at).filter(|from| self.is_known(*from)) {
                moved.row_mut(at).copy_from_slice(self.row(from));
                moved.scales[at] = self.scales[from];
            }
        }
        moved
    }

    /// With more vectors. Those of another model take the place of all that were there.
    pub(super) fn with(&self, model: &str, vectors: Vec<(usize, Vector)>) -> Self {
        let Some(dimension) = vectors.first().map(|(_, vector)| vector.dimension()) else {
            return self.clone();
        };
        let mut more = if self.model == model && self.dimension == dimension {
            self.clone()
        } else {
            Self {
                model: model.to_owned(),
                dimension,
                values: vec![0; self.scales.len() * dimension],
                scales: vec![0.0; self.scales.len()],
            }
        };
        for (at, vector) in vectors {
            if at < more.scales.len() && vector.dimension() == dimension {
                more.row_mut(at).copy_from_slice(vector.bytes());
                more.scales[at] = scale(vector.bytes());
            }
        }
        more
    }

    /// How alike the vector and those of the documents at `places` are, in their order; `None` if they cannot be
    /// compared. Of one without a vector it is zero.
    pub(super) fn likeness(&self, vector: &Vector, places: &[u32]) -> Option<Vec<f32>> {
        let asked = vector.bytes();
        let own = scale(asked);
        let is_comparable = self.dimension > 0 && asked.len() == self.dimension;
        let of = |at: &u32| product(asked, self.row(*at as usize)) * own * self.scales[*at as usize];
        is_comparable.then(|| places.iter().map(of).collect())
    }

    /// The same for one document; `None` too if it has no vector yet.
    pub(super) fn likeness_of(&self, vector: &Vector, at: usize) -> Option<f32> {
        let place = u32::try_from(at).ok().filter(|_| self.is_known(at))?;
        self.likeness(vector, &[place])?.first().copied()
    }

    fn row(&self, at: usize) -> &[i8] {
        &self.values[at * self.dimension..(at + 1) * self.dimension]
    }

    fn row_mut(&mut self, at: usize) -> &mut [i8] {
        &mut self.values[at * self.dimension..(at + 1) * self.dimension]
    }
}

fn scale(values: &[i8]) -> f32 {
    let length = product(values, values).sqrt();
    if length > 0.0 { 1.0 / length } else { 0.0 }
}

/// Vectors are far shorter than what would overflow the sum.
#[expect(clippy::cast_precision_loss, reason = "likeness needs no more than seven digits")]
fn product(left: &[i8], right: &[i8]) -> f32 {
    let products = left.iter().zip(right).map(|(left, right)| i32::from(*left) * i32::from(*right));
    products.sum::<i32>() as f32
}

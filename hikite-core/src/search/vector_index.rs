//! Vectors of all documents in one flat array, so that a query is compared with them in a single pass.

use super::encoder::Vector;

#[derive(Clone, Debug, Default)]
pub(super) struct VectorIndex {
    /// Model of the vectors.
    model: String,
    dimension: usize,
    values: Vec<i8>,
    /// Reciprocal length of each vector; zero if there is none yet.
    scales: Vec<f32>,
    /// Number of documents with a vector.
    known: usize,
}

impl VectorIndex {
    pub(super) fn none(len: usize) -> Self {
        Self { scales: vec![0.0; len], ..Self::default() }
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn is_known(&self, at: usize) -> bool {
        self.scales[at] > 0.0
    }

    /// Returns `true` if every document has a vector.
    pub(super) fn is_complete(&self) -> bool {
        self.known == self.scales.len()
    }

    pub(super) fn count(&self) -> usize {
        self.known
    }

    /// Copies the vectors to a new list of documents; `from` returns the former index of each.
    pub(super) fn remapped(&self, len: usize, from: impl Fn(usize) -> Option<usize>) -> Self {
        let mut remapped = Self {
            model: self.model.clone(),
            dimension: self.dimension,
            values: vec![0; len * self.dimension],
            scales: vec![0.0; len],
            known: 0,
        };
        for at in 0..len {
            if let Some(from) = from(at).filter(|from| self.is_known(*from)) {
                remapped.row_mut(at).copy_from_slice(self.row(from));
                remapped.scales[at] = self.scales[from];
                remapped.known += 1;
            }
        }
        remapped
    }

    /// Returns a copy with further vectors. Vectors of another model replace all existing ones.
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
                known: 0,
            }
        };
        for (at, vector) in vectors {
            if at < more.scales.len() && vector.dimension() == dimension {
                more.row_mut(at).copy_from_slice(vector.bytes());
                more.scales[at] = scale(vector.bytes());
            }
        }
        more.known = more.scales.iter().filter(|scale| **scale > 0.0).count();
        more
    }

    /// Returns the cosine similarity of `vector` to each document in `places`, zero for documents without a vector.
    /// `None` if the dimensions differ.
    pub(super) fn similarity(&self, vector: &Vector, places: &[u32]) -> Option<Vec<f32>> {
        let own = scale(vector.bytes());
        let is_comparable = self.dimension > 0 && vector.dimension() == self.dimension;
        let asked: Vec<i16> = vector.bytes().iter().map(|value| i16::from(*value)).collect();
        let of = |at: &u32| product(&asked, self.row(*at as usize)) * own * self.scales[*at as usize];
        is_comparable.then(|| places.iter().map(of).collect())
    }

    /// Returns the cosine similarity of `vector` to one document; `None` if it has no vector or the dimensions differ.
    pub(super) fn similarity_of(&self, vector: &Vector, at: usize) -> Option<f32> {
        let place = u32::try_from(at).ok().filter(|_| self.is_known(at))?;
        self.similarity(vector, &[place])?.first().copied()
    }

    fn row(&self, at: usize) -> &[i8] {
        &self.values[at * self.dimension..(at + 1) * self.dimension]
    }

    fn row_mut(&mut self, at: usize) -> &mut [i8] {
        &mut self.values[at * self.dimension..(at + 1) * self.dimension]
    }
}

fn scale(values: &[i8]) -> f32 {
    let wide: Vec<i16> = values.iter().map(|value| i16::from(*value)).collect();
    let length = product(&wide, values).sqrt();
    if length > 0.0 { 1.0 / length } else { 0.0 }
}

/// Computes a dot product. One side is widened beforehand and overflow is not checked (vectors are far too short for
/// it), because vector search spends its time here.
#[expect(clippy::cast_precision_loss, reason = "likeness needs no more than seven digits")]
fn product(left: &[i16], right: &[i8]) -> f32 {
    let products = left.iter().zip(right).map(|(left, right)| i32::from(*left).wrapping_mul(i32::from(*right)));
    products.fold(0, i32::wrapping_add) as f32
}

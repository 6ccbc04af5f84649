//! Output head: turns the sum over the pieces of a text into its vector with a few dense layers, two of which have a
//! skip connection past the previous layer.

use ndarray::Array1;

use crate::DIMENSION;
use crate::matrix::{Numbers, Packed};
use crate::network::KNOWN;

const HIDDEN: usize = 320;

#[derive(Debug)]
pub(crate) struct Head {
    pool: Packed,
    pool_bias: Array1<f32>,
    first: Packed,
    past_first: Packed,
    second: Packed,
    third: Packed,
    /// Two matrices: a few large weights make the first one's quantization coarse, and the second holds the residual.
    past_third: [Packed; 2],
    fourth: Packed,
}

impl Head {
    pub(crate) fn new(numbers: &mut Numbers) -> Self {
        Self {
            pool: numbers.packed(KNOWN, DIMENSION),
            pool_bias: numbers.vector(DIMENSION),
            first: numbers.packed(DIMENSION, HIDDEN),
            past_first: numbers.packed(DIMENSION, HIDDEN),
            second: numbers.packed(HIDDEN, HIDDEN),
            third: numbers.packed(HIDDEN, DIMENSION),
            past_third: std::array::from_fn(|_| numbers.packed(HIDDEN, DIMENSION)),
            fourth: numbers.packed(DIMENSION, DIMENSION),
        }
    }

    pub(crate) fn apply(&self, sum: &[f32], pieces: usize) -> Vec<f32> {
        let pooled = self.pool(sum, pieces);
        let first = rectified(self.first.product(&pooled));
        let mut second = self.past_first.product(&pooled);
        self.second.add_product(&first, &mut second);
        let second = rectified(second);
        let third = rectified(self.third.product(&second));
        let mut meaning = self.fourth.product(&third);
        for part in &self.past_third {
            part.add_product(&second, &mut meaning);
        }
        for value in &mut meaning {
            *value = value.tanh();
        }
        let length = meaning.iter().map(|value| value * value).sum::<f32>().sqrt();
        for value in &mut meaning {
            *value /= length;
        }
        meaning
    }

    /// Projects the sum to the text dimension, scaled by the square root of the length.
    fn pool(&self, sum: &[f32], pieces: usize) -> Vec<f32> {
        let count = f32::from(u16::try_from(pieces).unwrap_or(u16::MAX));
        let mut pooled = (&self.pool_bias * count).to_vec();
        self.pool.add_product(sum, &mut pooled);
        for value in &mut pooled {
            *value /= count.sqrt();
        }
        pooled
    }
}

fn rectified(mut values: Vec<f32>) -> Vec<f32> {
    for value in &mut values {
        *value = value.max(0.0);
    }
    values
}

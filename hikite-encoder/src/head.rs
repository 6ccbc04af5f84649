//! Output head: turns the sum over the pieces of a text into its vector with a few dense layers, two of which have a
//! skip connection past the previous layer.

use ndarray::Array1;

use crate::DIMENSION;
use crate::matrix::{QuantizedMatrix, WeightReader};
use crate::network::FEATURES;

const HIDDEN: usize = 320;

#[derive(Debug)]
pub(crate) struct PoolingHead {
    pool: QuantizedMatrix,
    pool_bias: Array1<f32>,
    first: QuantizedMatrix,
    first_skip: QuantizedMatrix,
    second: QuantizedMatrix,
    third: QuantizedMatrix,
    /// Two matrices: a few large weights make the first one's quantization coarse, and the second holds the residual.
    third_skip: [QuantizedMatrix; 2],
    fourth: QuantizedMatrix,
}

impl PoolingHead {
    pub(crate) fn new(numbers: &mut WeightReader) -> Self {
        Self {
            pool: numbers.packed(FEATURES, DIMENSION),
            pool_bias: numbers.vector(DIMENSION),
            first: numbers.packed(DIMENSION, HIDDEN),
            first_skip: numbers.packed(DIMENSION, HIDDEN),
            second: numbers.packed(HIDDEN, HIDDEN),
            third: numbers.packed(HIDDEN, DIMENSION),
            third_skip: std::array::from_fn(|_| numbers.packed(HIDDEN, DIMENSION)),
            fourth: numbers.packed(DIMENSION, DIMENSION),
        }
    }

    pub(crate) fn apply(&self, sum: &[f32], pieces: usize) -> Vec<f32> {
        let pooled = self.pool(sum, pieces);
        let first = relu(self.first.product(&pooled));
        let mut second = self.first_skip.product(&pooled);
        self.second.add_product(&first, &mut second);
        let second = relu(second);
        let third = relu(self.third.product(&second));
        let mut output = self.fourth.product(&third);
        for part in &self.third_skip {
            part.add_product(&second, &mut output);
        }
        for value in &mut output {
            *value = value.tanh();
        }
        let length = output.iter().map(|value| value * value).sum::<f32>().sqrt();
        for value in &mut output {
            *value /= length;
        }
        output
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

fn relu(mut values: Vec<f32>) -> Vec<f32> {
    for value in &mut values {
        *value = value.max(0.0);
    }
    values
}

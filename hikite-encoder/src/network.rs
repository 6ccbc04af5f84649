//! The network from tokens to the vector of a text: a small BERT. Each token's embedding is mixed with the others by a
//! few layers of attention; the vector is the mean of the results, of unit length.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis, Slice};

use crate::DIMENSION;
use crate::file::{ModelFile, float};
use crate::matrix::{DenseLayer, WeightReader};
use crate::tokenizer::TOKENS_MAX;

const LAYERS: usize = 3;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = DIMENSION / HEADS;
const INNER: usize = 4 * DIMENSION;

#[derive(Debug)]
pub(crate) struct EncoderNetwork {
    scales: &'static [u8],
    table: &'static [[u8; DIMENSION]],
    /// One row per position in the text.
    positions: Array1<f32>,
    norm: LayerNorm,
    layers: Vec<TransformerLayer>,
}

impl EncoderNetwork {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let mut weights = WeightReader::new(file.network);
        let network = Self {
            scales: file.scales,
            table: file.table.as_chunks().0,
            positions: weights.vector(TOKENS_MAX * DIMENSION),
            norm: LayerNorm::new(&mut weights),
            layers: (0..LAYERS).map(|_| TransformerLayer::new(&mut weights)).collect(),
        };
        debug_assert!(weights.is_empty(), "the network is of another shape");
        network
    }

    /// Returns the unit vector of a tokenized text.
    pub(crate) fn read(&self, rows: &[usize]) -> Vec<f32> {
        let mut features = Array2::zeros((rows.len(), DIMENSION));
        let positions = self.positions.as_slice().unwrap_or_default().chunks_exact(DIMENSION);
        for ((row, mut features), positions) in rows.iter().zip(features.rows_mut()).zip(positions) {
            let scale = float(self.scales, *row);
            for ((value, byte), position) in features.iter_mut().zip(&self.table[*row]).zip(positions) {
                *value = f32::from(byte.cast_signed()) * scale + position;
            }
        }
        self.norm.apply(&mut features);
        for layer in &self.layers {
            layer.apply(&mut features);
        }
        let sum = features.sum_axis(Axis(0));
        let length = sum.dot(&sum).sqrt();
        sum.iter().map(|value| value / length).collect()
    }
}

/// Attention over the tokens, then a network over each token; both with a residual connection and a norm.
#[derive(Debug)]
struct TransformerLayer {
    query: DenseLayer,
    key: DenseLayer,
    value: DenseLayer,
    mix: DenseLayer,
    mix_norm: LayerNorm,
    up: DenseLayer,
    down: DenseLayer,
    norm: LayerNorm,
}

impl TransformerLayer {
    fn new(weights: &mut WeightReader) -> Self {
        Self {
            query: weights.dense(DIMENSION, DIMENSION),
            key: weights.dense(DIMENSION, DIMENSION),
            value: weights.dense(DIMENSION, DIMENSION),
            mix: weights.dense(DIMENSION, DIMENSION),
            mix_norm: LayerNorm::new(weights),
            up: weights.dense(DIMENSION, INNER),
            down: weights.dense(INNER, DIMENSION),
            norm: LayerNorm::new(weights),
        }
    }

    fn apply(&self, features: &mut Array2<f32>) {
        *features += &self.mix.apply(&self.attend(features));
        self.mix_norm.apply(features);
        let mut inner = self.up.apply(features);
        inner.mapv_inplace(gelu);
        *features += &self.down.apply(&inner);
        self.norm.apply(features);
    }

    /// Returns, per token, the mean of all tokens' values, weighted by attention.
    fn attend(&self, features: &Array2<f32>) -> Array2<f32> {
        let (query, key, value) = (self.query.apply(features), self.key.apply(features), self.value.apply(features));
        let count = features.nrows();
        let mut seen = Array2::zeros((count, DIMENSION));
        let mut weights = Array2::zeros((count, count));
        for head in 0..HEADS {
            let columns = Slice::from(head * HEAD_WIDTH..(head + 1) * HEAD_WIDTH);
            let of = |all: &Array2<f32>| all.slice_axis(Axis(1), columns).to_owned();
            general_mat_mul(HEAD_SCALE, &of(&query), &of(&key).t(), 0.0, &mut weights);
            weights.rows_mut().into_iter().for_each(|row| softmax(row.into_slice().unwrap_or_default()));
            general_mat_mul(1.0, &weights, &of(&value), 0.0, &mut seen.slice_axis_mut(Axis(1), columns));
        }
        seen
    }
}

/// One over the square root of `HEAD_WIDTH`.
const HEAD_SCALE: f32 = 0.176_776_7;

fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in &mut *row {
        *value = (*value - largest).exp();
        sum += *value;
    }
    for value in row {
        *value /= sum;
    }
}

/// Gaussian error linear unit.
fn gelu(value: f32) -> f32 {
    0.5 * value * (1.0 + erf(value * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, by the approximation 7.1.26 of Abramowitz and Stegun, whose error is below 2e-7.
fn erf(value: f32) -> f32 {
    const FACTORS: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let t = 1.0 / (1.0 + 0.327_591_1 * value.abs());
    let polynomial = FACTORS.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (1.0 - polynomial * (-value * value).exp()).copysign(value)
}

/// Layer normalization with learned gain and bias.
#[derive(Debug)]
struct LayerNorm {
    gain: Array1<f32>,
    bias: Array1<f32>,
}

impl LayerNorm {
    fn new(weights: &mut WeightReader) -> Self {
        Self { gain: weights.vector(DIMENSION), bias: weights.vector(DIMENSION) }
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.dot(&row) / self.width();
            // The published epsilon, 1e-12, only avoids a division by zero for a row of equal numbers.
            let scale = (variance + 1e-12).sqrt().recip();
            ndarray::Zip::from(&mut row)
                .and(&self.gain)
                .and(&self.bias)
                .for_each(|value, gain, bias| *value = *value * scale * gain + bias);
        }
    }

    fn width(&self) -> f32 {
        f32::from(u16::try_from(self.gain.len()).unwrap_or(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_activation_is_the_exact_one() {
        // Values of PyTorch's `gelu`.
        for (value, expected) in
            [(-3.0, -0.004_049_7), (-0.5, -0.154_268_8), (0.0, 0.0), (1.0, 0.841_344_7), (4.0, 3.999_873_3)]
        {
            assert!((gelu(value) - expected).abs() < 1e-6, "{value}: {}", gelu(value));
        }
    }

    #[test]
    fn attention_weights_add_up_to_one() {
        let mut row = [1000.0, 1000.0, -1000.0];
        softmax(&mut row);
        assert_eq!(row.map(f32::to_bits), [0.5_f32, 0.5, 0.0].map(f32::to_bits));
    }
}

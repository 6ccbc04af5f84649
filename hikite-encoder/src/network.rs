//! The network from tokens to the vector of a text: a small BERT. Each token's embedding is mixed with the others by a
//! few layers of attention; the vector is the mean of the results, of unit length.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the vector instructions")]

use pulp::{Arch, Simd, WithSimd};

use crate::DIMENSION;
use crate::file::{ModelFile, float};
use crate::matrix::{DenseLayer, WeightReader};
use crate::tokenizer::TOKENS_MAX;

const LAYERS: usize = 3;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = DIMENSION / HEADS;
const WIDTH: f32 = 384.0;
const INNER: usize = 4 * DIMENSION;

#[derive(Debug)]
pub(crate) struct EncoderNetwork {
    scales: &'static [u8],
    table: &'static [[u8; DIMENSION]],
    /// One row per position in the text.
    positions: Vec<f32>,
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
        Arch::new().dispatch(NetworkPass { network: self, rows })
    }
}

/// One pass of a tokenized text through the network. Every function on its way is inlined, so that all of it is compiled
/// for the vector instructions of the processor.
struct NetworkPass<'a> {
    network: &'a EncoderNetwork,
    rows: &'a [usize],
}

impl WithSimd for NetworkPass<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { network, rows } = self;
        let mut features = Vec::with_capacity(rows.len() * DIMENSION);
        for (row, positions) in rows.iter().zip(network.positions.chunks_exact(DIMENSION)) {
            let scale = float(network.scales, *row);
            let values = network.table[*row].iter().zip(positions);
            features.extend(values.map(|(byte, position)| f32::from(byte.cast_signed()) * scale + position));
        }
        network.norm.apply(&mut features);
        for layer in &network.layers {
            layer.apply(simd, &mut features);
        }
        let mut sum = vec![0.0; DIMENSION];
        features.chunks_exact(DIMENSION).for_each(|token| add(&mut sum, token));
        let length = dot(&sum, &sum).sqrt();
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

    #[inline(always)]
    fn apply<S: Simd>(&self, simd: S, features: &mut [f32]) {
        add(features, &self.mix.apply(simd, &self.attend(simd, features)));
        self.mix_norm.apply(features);
        let mut inner = self.up.apply(simd, features);
        for value in &mut inner {
            *value = gelu(*value);
        }
        add(features, &self.down.apply(simd, &inner));
        self.norm.apply(features);
    }

    /// Returns, per token, the mean of all tokens' values, weighted by attention.
    #[inline(always)]
    fn attend<S: Simd>(&self, simd: S, features: &[f32]) -> Vec<f32> {
        let (query, key, value) =
            (self.query.apply(simd, features), self.key.apply(simd, features), self.value.apply(simd, features));
        let mut seen = Vec::with_capacity(features.len());
        let mut weights = vec![0.0; features.len() / DIMENSION];
        let [query, key, value] = [&query, &key, &value].map(|all| all.as_chunks::<HEAD_WIDTH>().0);
        for (at, query) in query.iter().enumerate() {
            let of_head = at % HEADS..;
            for (weight, key) in weights.iter_mut().zip(key[of_head.clone()].iter().step_by(HEADS)) {
                *weight = HEAD_SCALE * dot(query, key);
            }
            softmax(&mut weights);
            let mut sums = [0.0; HEAD_WIDTH];
            for (weight, value) in weights.iter().zip(value[of_head].iter().step_by(HEADS)) {
                for (sum, value) in sums.iter_mut().zip(value) {
                    *sum += weight * value;
                }
            }
            seen.extend(sums);
        }
        seen
    }
}

/// One over the square root of `HEAD_WIDTH`.
const HEAD_SCALE: f32 = 0.176_776_7;

#[inline(always)]
fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for value in &mut *row {
        *value = exp(*value - largest);
    }
    let sum: f32 = row.iter().sum();
    for value in row {
        *value /= sum;
    }
}

/// The inner product. Eight sums side by side let the compiler use vector instructions.
#[inline(always)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    for (left, right) in left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    sums.iter().sum()
}

#[inline(always)]
fn add(sums: &mut [f32], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Gaussian error linear unit.
#[inline(always)]
fn gelu(value: f32) -> f32 {
    0.5 * value * (1.0 + erf(value * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, by the approximation 7.1.26 of Abramowitz and Stegun, whose error is below 2e-7.
#[inline(always)]
fn erf(value: f32) -> f32 {
    const FACTORS: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let t = 1.0 / (1.0 + 0.327_591_1 * value.abs());
    let polynomial = FACTORS.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (1.0 - polynomial * exp(-value * value)).copysign(value)
}

/// The exponential function of numbers up to zero, in steps that exist as vector instructions: the power of two next to
/// the result goes into the exponent of the number, the rest is a Taylor series.
#[inline(always)]
fn exp(value: f32) -> f32 {
    /// Added to a number, leaves the next integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    const FACTORS: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let power = (value * std::f32::consts::LOG2_E).max(-126.0);
    let rounded = power + ROUND;
    let rest = (power - (rounded - ROUND)) * std::f32::consts::LN_2;
    let fraction = FACTORS.iter().fold(0.0, |sum, factor| sum * rest + factor);
    f32::from_bits((rounded.to_bits() << 23).wrapping_add(fraction.to_bits()))
}

/// Layer normalization with learned gain and bias.
#[derive(Debug)]
struct LayerNorm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl LayerNorm {
    fn new(weights: &mut WeightReader) -> Self {
        Self { gain: weights.vector(DIMENSION), bias: weights.vector(DIMENSION) }
    }

    #[inline(always)]
    fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(DIMENSION) {
            let mean = row.iter().sum::<f32>() / WIDTH;
            for value in &mut *row {
                *value -= mean;
            }
            // The published epsilon, 1e-12, only avoids a division by zero for a row of equal numbers.
            let scale = (dot(row, row) / WIDTH + 1e-12).sqrt().recip();
            for ((value, gain), bias) in row.iter_mut().zip(&self.gain).zip(&self.bias) {
                *value = *value * scale * gain + bias;
            }
        }
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
    fn the_exponential_is_that_of_the_standard_library() {
        for step in 0_u16..=8_000 {
            let value = f32::from(step) / -100.0;
            let (found, expected) = (exp(value), value.exp());
            assert!((found - expected).abs() <= 5e-6 * expected, "{value}: {found}, not {expected}");
        }
        assert!(exp(-1000.0) < 1e-37);
    }

    #[test]
    fn attention_weights_add_up_to_one() {
        let mut row = [1000.0, 1000.0, -1000.0];
        softmax(&mut row);
        assert_eq!(row[..2], [0.5, 0.5]);
        assert!(row[2] < 1e-37);
    }
}

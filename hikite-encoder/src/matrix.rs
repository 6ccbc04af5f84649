//! Readers for the network's weights in the embedded file, and products of rows with them. The products use the widest
//! vector instructions that the processor has.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the vector instructions")]

use pulp::{Simd, WithSimd};

use crate::file::float;

/// Rows and outputs that are multiplied together: each loaded number is used several times, and all sums fit into the
/// processor's registers.
const ROWS: usize = 3;
const OUTPUTS: usize = 4;

/// Sequential reader of matrices and vectors.
#[derive(Debug)]
pub(crate) struct WeightReader {
    rest: &'static [u8],
}

impl WeightReader {
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn vector(&mut self, length: usize) -> Vec<f32> {
        let bytes = self.take(length * 4);
        (0..length).map(|at| float(bytes, at)).collect()
    }

    /// Reads a dense layer and leaves its weights in place.
    pub(crate) fn dense(&mut self, inputs: usize, outputs: usize) -> DenseLayer {
        DenseLayer {
            scales: self.vector(outputs),
            bias: self.vector(outputs),
            weights: self.take(inputs * outputs),
            inputs,
        }
    }

    /// Returns `true` if everything was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: usize) -> &'static [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// A dense layer with one byte per weight and a scale per output.
#[derive(Debug)]
pub(crate) struct DenseLayer {
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// One row per output.
    weights: &'static [u8],
    inputs: usize,
}

impl DenseLayer {
    /// Applies the layer to each row.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(&self, simd: S, rows: &[f32]) -> Vec<f32> {
        simd.vectorize(DenseProduct { layer: self, rows })
    }
}

/// The product of rows with the weights of a layer.
struct DenseProduct<'a> {
    layer: &'a DenseLayer,
    rows: &'a [f32],
}

impl WithSimd for DenseProduct<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let DenseLayer { scales, bias, weights, inputs } = self.layer;
        let outputs = bias.len();
        let mut found = vec![0.0; self.rows.len() / inputs * outputs];
        let mut block = vec![0.0; OUTPUTS * inputs];
        for (at, bytes) in weights.chunks_exact(OUTPUTS * inputs).enumerate() {
            for (number, byte) in block.iter_mut().zip(bytes) {
                *number = f32::from(byte.cast_signed());
            }
            let columns = at * OUTPUTS..(at + 1) * OUTPUTS;
            for (rows, found) in self.rows.chunks(ROWS * inputs).zip(found.chunks_mut(ROWS * outputs)) {
                let sums = products(simd, rows, &block, *inputs);
                for (sums, found) in sums.iter().zip(found.chunks_exact_mut(outputs)) {
                    let factors = scales[columns.clone()].iter().zip(&bias[columns.clone()]);
                    for ((found, sum), (scale, bias)) in found[columns.clone()].iter_mut().zip(sums).zip(factors) {
                        *found = simd.reduce_sum_f32s(*sum) * scale + bias;
                    }
                }
            }
        }
        found
    }
}

/// Multiplies up to `ROWS` rows with `OUTPUTS` rows of weights. In place of missing rows, the last one is used again.
#[inline(always)]
fn products<S: Simd>(simd: S, rows: &[f32], block: &[f32], inputs: usize) -> [[S::f32s; OUTPUTS]; ROWS] {
    let last = rows.len() / inputs - 1;
    let rows: [&[S::f32s]; ROWS] = std::array::from_fn(|at| lanes::<S>(&rows[at.min(last) * inputs..][..inputs]));
    let block: [&[S::f32s]; OUTPUTS] = std::array::from_fn(|at| lanes::<S>(&block[at * inputs..][..inputs]));
    let mut sums = [[simd.splat_f32s(0.0); OUTPUTS]; ROWS];
    for at in 0..inputs / S::F32_LANES {
        let values = rows.map(|row| row[at]);
        for (output, weights) in block.iter().enumerate() {
            for (sums, value) in sums.iter_mut().zip(values) {
                sums[output] = simd.mul_add_e_f32s(value, weights[at], sums[output]);
            }
        }
    }
    sums
}

/// Returns the numbers as vectors. Their count must be a multiple of every processor's vector length.
#[inline(always)]
fn lanes<S: Simd>(numbers: &[f32]) -> &[S::f32s] {
    let (vectors, rest) = S::as_simd_f32s(numbers);
    debug_assert!(rest.is_empty(), "{} numbers are no multiple of {}", numbers.len(), S::F32_LANES);
    vectors
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, Scalar};

    use super::*;

    const INPUTS: usize = 16;
    const OUTPUTS_OF_TEST: usize = 2 * OUTPUTS;

    /// The layer whose output `o` has the scale `o`, the bias 1 and the weights `o - 5`.
    fn layer() -> DenseLayer {
        let numbers = |of: fn(u8) -> f32| (0..8).map(of);
        let mut bytes: Vec<u8> = numbers(f32::from).chain(numbers(|_| 1.0)).flat_map(f32::to_le_bytes).collect();
        bytes.extend((-5..3_i8).flat_map(|weight| [weight.cast_unsigned(); INPUTS]));
        let mut reader = WeightReader::new(bytes.leak());
        let layer = reader.dense(INPUTS, OUTPUTS_OF_TEST);
        assert!(reader.is_empty());
        layer
    }

    #[test]
    fn a_layer_is_its_weights_times_their_scales_and_the_bias() {
        let layer = layer();
        for count in 1_u8..=7 {
            let rows: Vec<f32> = (1..=count).flat_map(|row| [f32::from(row); INPUTS]).collect();
            let expected: Vec<f32> = (1..=count)
                .flat_map(|row| (0_u8..8).map(move |output| (row, output)))
                .map(|(row, output)| 16.0 * f32::from(row) * (f32::from(output) - 5.0) * f32::from(output) + 1.0)
                .collect();
            assert_eq!(Arch::new().dispatch(DenseProduct { layer: &layer, rows: &rows }), expected, "{count} rows");
            assert_eq!(layer.apply(Scalar, &rows), expected, "{count} rows without vector instructions");
        }
    }
}

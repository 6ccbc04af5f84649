//! Readers for the network's weights in the embedded file, and matrix products with them.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis, Slice};

use crate::file::float;

/// Outputs that are dequantized together. They fit into the processor's cache, so a product needs no other copy of the
/// weights.
const BLOCK: usize = 64;

/// Sequential reader of matrices and vectors.
#[derive(Debug)]
pub(crate) struct WeightReader {
    rest: &'static [u8],
}

impl WeightReader {
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn vector(&mut self, length: usize) -> Array1<f32> {
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
    scales: Array1<f32>,
    bias: Array1<f32>,
    /// One row per output.
    weights: &'static [u8],
    inputs: usize,
}

impl DenseLayer {
    /// Applies the layer to each row.
    pub(crate) fn apply(&self, rows: &Array2<f32>) -> Array2<f32> {
        let outputs = self.bias.len();
        let mut found = Array2::zeros((rows.nrows(), outputs));
        let mut block = Array2::zeros((BLOCK.min(outputs), self.inputs));
        for (at, bytes) in self.weights.chunks(BLOCK * self.inputs).enumerate() {
            let numbers = block.as_slice_mut().unwrap_or_default();
            for (number, byte) in numbers.iter_mut().zip(bytes) {
                *number = f32::from(byte.cast_signed());
            }
            let count = bytes.len() / self.inputs;
            let weights = block.slice_axis(Axis(0), Slice::from(..count));
            let mut columns = found.slice_axis_mut(Axis(1), Slice::from(at * BLOCK..at * BLOCK + count));
            general_mat_mul(1.0, rows, &weights.t(), 0.0, &mut columns);
        }
        for row in found.rows_mut() {
            ndarray::Zip::from(row)
                .and(&self.scales)
                .and(&self.bias)
                .for_each(|value, scale, bias| *value = *value * scale + bias);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_its_weights_times_their_scales_and_the_bias() {
        // Three outputs with scales 1, 2 and 4 and biases 0, 1 and 0; two inputs.
        static BYTES: &[u8] =
            &[0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 128, 64, 0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 0, 1, 127, 2, 0, 255, 128];
        let mut reader = WeightReader::new(BYTES);
        let layer = reader.dense(2, 3);
        assert!(reader.is_empty());
        let found = layer.apply(&ndarray::array![[2.0, 0.5], [0.0, 1.0]]);
        assert_eq!(found, ndarray::array![[65.5, 9.0, -264.0], [127.0, 1.0, -512.0]]);
    }

    #[test]
    fn outputs_beyond_one_block_are_in_their_places() {
        static WEIGHTS: [u8; 2 * 4 * (BLOCK + 3) + BLOCK + 3] = {
            let mut bytes = [0; 2 * 4 * (BLOCK + 3) + BLOCK + 3];
            let mut at = 0;
            while at < BLOCK + 3 {
                // The scale 1.0 and the weight 1.
                bytes[at * 4 + 2] = 128;
                bytes[at * 4 + 3] = 63;
                bytes[2 * 4 * (BLOCK + 3) + at] = 1;
                at += 1;
            }
            bytes
        };
        let layer = WeightReader::new(&WEIGHTS).dense(1, BLOCK + 3);
        assert_eq!(layer.apply(&ndarray::array![[3.0]]), Array2::from_elem((1, BLOCK + 3), 3.0));
    }
}

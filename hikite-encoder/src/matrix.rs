//! Readers for the network's weights in the embedded file, and matrix products with them.

use ndarray::{Array1, Array2};

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
        self.take(length * 4).as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    /// Reads a matrix and leaves its bytes in place; one scale per column precedes them.
    pub(crate) fn packed(&mut self, rows: usize, columns: usize) -> QuantizedMatrix {
        QuantizedMatrix { scales: self.vector(columns), bytes: self.take(rows * columns) }
    }

    /// Reads a matrix and dequantizes it, for products with many rows.
    pub(crate) fn matrix(&mut self, rows: usize, columns: usize) -> Array2<f32> {
        let QuantizedMatrix { scales, bytes } = self.packed(rows, columns);
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            f32::from(bytes[row * columns + column].cast_signed()) * scales[column]
        })
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

/// A matrix quantized to one byte per weight, with a scale per column. Suits products with a single vector: those are
/// bound by memory, and bytes load four times as fast as `f32`.
#[derive(Debug)]
pub(crate) struct QuantizedMatrix {
    scales: Array1<f32>,
    bytes: &'static [u8],
}

impl QuantizedMatrix {
    /// Adds the product of `vector` and this matrix to `sums`.
    pub(crate) fn add_product(&self, vector: &[f32], sums: &mut [f32]) {
        let mut steps = vec![0.0; self.scales.len()];
        let rows = vector.iter().zip(self.bytes.chunks_exact(steps.len()));
        // After a ReLU half of the vector is zero.
        for (factor, row) in rows.filter(|(factor, _)| **factor != 0.0) {
            for (sum, byte) in steps.iter_mut().zip(row) {
                *sum += factor * f32::from(byte.cast_signed());
            }
        }
        for ((sum, steps), scale) in sums.iter_mut().zip(steps).zip(&self.scales) {
            *sum += steps * scale;
        }
    }

    pub(crate) fn product(&self, vector: &[f32]) -> Vec<f32> {
        let mut sums = vec![0.0; self.scales.len()];
        self.add_product(vector, &mut sums);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows and three columns, with scales 1, 2 and 4.
    static BYTES: &[u8] = &[0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 128, 64, 1, 2, 255, 127, 0, 128];

    #[test]
    fn packed_and_unpacked_are_the_same_matrix() {
        let matrix = WeightReader::new(BYTES).matrix(2, 3);
        assert_eq!(matrix, ndarray::array![[1.0, 4.0, -4.0], [127.0, 0.0, -512.0]]);
        let packed = WeightReader::new(BYTES).packed(2, 3);
        assert_eq!(packed.product(&[2.0, 0.5]), ndarray::array![2.0, 0.5].dot(&matrix).to_vec());
        let mut sums = [1.0; 3];
        packed.add_product(&[0.0, 1.0], &mut sums);
        assert_eq!(sums.to_vec(), [128.0, 1.0, -511.0]);
    }
}

//! The network from pieces to a text vector. Three convolutions, over two, three and five pieces, add context to each
//! piece's embedding; the results are summed over the text; `head` maps the sum to the vector.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, ShapeBuilder, Slice};

use crate::DIMENSION;
use crate::file::ModelFile;
use crate::head::PoolingHead;
use crate::matrix::WeightReader;
use crate::table::EmbeddingTable;

/// Output channels of one convolution.
const CHANNELS: usize = 256;
/// Kernel width of each convolution, and how many pieces precede its center.
const CONVOLUTIONS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];
/// Width of a piece's features: its embedding and the outputs of the convolutions.
pub(crate) const FEATURES: usize = DIMENSION + CONVOLUTIONS.len() * CHANNELS;

#[derive(Debug)]
pub(crate) struct EncoderNetwork {
    table: EmbeddingTable,
    projection: DenseLayer,
    projection_norm: LayerNorm,
    convolutions: Vec<ConvolutionBlock>,
    norm: LayerNorm,
    head: PoolingHead,
}

impl EncoderNetwork {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let mut numbers = WeightReader::new(file.network);
        let network = Self {
            table: EmbeddingTable::new(file),
            projection: DenseLayer::new(&mut numbers, DIMENSION, CONVOLUTIONS.len() * CHANNELS),
            projection_norm: LayerNorm::new(&mut numbers, CONVOLUTIONS.len() * CHANNELS),
            convolutions: CONVOLUTIONS
                .iter()
                .map(|(size, before)| ConvolutionBlock::new(&mut numbers, *size, *before))
                .collect(),
            norm: LayerNorm::new(&mut numbers, FEATURES),
            head: PoolingHead::new(&mut numbers),
        };
        debug_assert!(numbers.is_empty(), "the network is of another shape");
        network
    }

    /// Returns the unit vector of a tokenized text.
    pub(crate) fn read(&self, pieces: &[usize]) -> Vec<f32> {
        let mut features = Array2::zeros((pieces.len(), FEATURES));
        for (piece, mut row) in pieces.iter().zip(features.rows_mut()) {
            self.table.read(*piece, &mut row.as_slice_mut().unwrap_or_default()[..DIMENSION]);
        }
        let mut projected = self.projection.apply(&features.slice_axis(Axis(1), Slice::from(..DIMENSION)));
        // One layer norm covers the projections of all three convolutions.
        self.projection_norm.apply(&mut projected);
        for (at, convolution) in self.convolutions.iter().enumerate() {
            let columns = |first: usize| Slice::from(first + at * CHANNELS..first + (at + 1) * CHANNELS);
            let seen = convolution.convolve(&projected.slice_axis(Axis(1), columns(0)));
            features.slice_axis_mut(Axis(1), columns(DIMENSION)).assign(&seen);
        }
        self.norm.apply(&mut features);
        let sum = features.sum_axis(Axis(0));
        self.head.apply(sum.as_slice().unwrap_or_default(), pieces.len())
    }
}

#[derive(Debug)]
struct DenseLayer {
    weights: Array2<f32>,
    bias: Array1<f32>,
}

impl DenseLayer {
    fn new(numbers: &mut WeightReader, inputs: usize, outputs: usize) -> Self {
        Self { weights: numbers.matrix(inputs, outputs), bias: numbers.vector(outputs) }
    }

    fn apply(&self, inputs: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut outputs = Array2::zeros((inputs.nrows(), self.bias.len()));
        outputs.assign(&self.bias);
        general_mat_mul(1.0, inputs, &self.weights, 1.0, &mut outputs);
        outputs
    }
}

/// Layer normalization with learned gain and bias.
#[derive(Debug)]
struct LayerNorm {
    gain: Array1<f32>,
    bias: Array1<f32>,
}

impl LayerNorm {
    fn new(numbers: &mut WeightReader, width: usize) -> Self {
        Self { gain: numbers.vector(width), bias: numbers.vector(width) }
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

/// Two convolutional layers with residual connections.
#[derive(Debug)]
struct ConvolutionBlock {
    size: usize,
    before: usize,
    layers: [DenseLayer; 2],
}

impl ConvolutionBlock {
    fn new(numbers: &mut WeightReader, size: usize, before: usize) -> Self {
        let mut layer = || DenseLayer::new(numbers, size * CHANNELS, CHANNELS);
        Self { size, before, layers: [layer(), layer()] }
    }

    fn convolve(&self, pieces: &ArrayView2<'_, f32>) -> Array2<f32> {
        let count = pieces.nrows();
        let own = Slice::from(self.before..self.before + count);
        // Zero padding where there is no neighbor.
        let mut row = Array2::zeros((count + self.size - 1, CHANNELS));
        row.slice_axis_mut(Axis(0), own).assign(pieces);
        for layer in &self.layers {
            let seen = layer.apply(&self.context_rows(&row, count));
            row.slice_axis_mut(Axis(0), own).zip_mut_with(&seen, |features, seen| *features += seen.max(0.0));
        }
        row.slice_axis(Axis(0), own).to_owned()
    }

    /// Returns a view whose rows are each piece with its neighbors. The rows overlap in memory, so nothing is copied.
    fn context_rows<'a>(&self, row: &'a Array2<f32>, count: usize) -> ArrayView2<'a, f32> {
        let shape = (count, self.size * CHANNELS).strides((CHANNELS, 1));
        let numbers = row.as_slice().unwrap_or_default();
        ArrayView2::from_shape(shape, numbers).expect("as many rows as pieces, and their neighbours")
    }
}

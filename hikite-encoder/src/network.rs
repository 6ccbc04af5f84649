//! The network from pieces to a text vector. Three convolutions, over two, three and five pieces, add context to each
//! piece's embedding; the results are summed over the text; `head` maps the sum to the vector.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, ShapeBuilder, Slice};

use crate::DIMENSION;
use crate::file::File;
use crate::head::Head;
use crate::matrix::Numbers;
use crate::table::Table;

/// Output channels of one convolution.
const SEEN: usize = 256;
/// Kernel width of each convolution, and how many pieces precede its center.
const WINDOWS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];
/// Width of a piece's features: its embedding and the outputs of the convolutions.
pub(crate) const KNOWN: usize = DIMENSION + WINDOWS.len() * SEEN;

#[derive(Debug)]
pub(crate) struct Network {
    table: Table,
    projection: Layer,
    projection_norm: Norm,
    windows: Vec<Window>,
    norm: Norm,
    head: Head,
}

impl Network {
    pub(crate) fn new(file: &File) -> Self {
        let mut numbers = Numbers::new(file.network);
        let network = Self {
            table: Table::new(file),
            projection: Layer::new(&mut numbers, DIMENSION, WINDOWS.len() * SEEN),
            projection_norm: Norm::new(&mut numbers, WINDOWS.len() * SEEN),
            windows: WINDOWS.iter().map(|(size, before)| Window::new(&mut numbers, *size, *before)).collect(),
            norm: Norm::new(&mut numbers, KNOWN),
            head: Head::new(&mut numbers),
        };
        debug_assert!(numbers.is_empty(), "the network is of another shape");
        network
    }

    /// Returns the unit vector of a tokenized text.
    pub(crate) fn read(&self, pieces: &[usize]) -> Vec<f32> {
        let mut known = Array2::zeros((pieces.len(), KNOWN));
        for (piece, mut row) in pieces.iter().zip(known.rows_mut()) {
            self.table.read(*piece, &mut row.as_slice_mut().unwrap_or_default()[..DIMENSION]);
        }
        let mut projected = self.projection.apply(&known.slice_axis(Axis(1), Slice::from(..DIMENSION)));
        // One layer norm covers the projections of all three convolutions.
        self.projection_norm.apply(&mut projected);
        for (at, window) in self.windows.iter().enumerate() {
            let columns = |first: usize| Slice::from(first + at * SEEN..first + (at + 1) * SEEN);
            let seen = window.look(&projected.slice_axis(Axis(1), columns(0)));
            known.slice_axis_mut(Axis(1), columns(DIMENSION)).assign(&seen);
        }
        self.norm.apply(&mut known);
        let sum = known.sum_axis(Axis(0));
        self.head.apply(sum.as_slice().unwrap_or_default(), pieces.len())
    }
}

#[derive(Debug)]
struct Layer {
    weights: Array2<f32>,
    bias: Array1<f32>,
}

impl Layer {
    fn new(numbers: &mut Numbers, inputs: usize, outputs: usize) -> Self {
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
struct Norm {
    gain: Array1<f32>,
    bias: Array1<f32>,
}

impl Norm {
    fn new(numbers: &mut Numbers, width: usize) -> Self {
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
struct Window {
    size: usize,
    before: usize,
    layers: [Layer; 2],
}

impl Window {
    fn new(numbers: &mut Numbers, size: usize, before: usize) -> Self {
        let mut layer = || Layer::new(numbers, size * SEEN, SEEN);
        Self { size, before, layers: [layer(), layer()] }
    }

    fn look(&self, pieces: &ArrayView2<'_, f32>) -> Array2<f32> {
        let count = pieces.nrows();
        let own = Slice::from(self.before..self.before + count);
        // Zero padding where there is no neighbor.
        let mut row = Array2::zeros((count + self.size - 1, SEEN));
        row.slice_axis_mut(Axis(0), own).assign(pieces);
        for layer in &self.layers {
            let seen = layer.apply(&self.neighbours(&row, count));
            row.slice_axis_mut(Axis(0), own).zip_mut_with(&seen, |known, seen| *known += seen.max(0.0));
        }
        row.slice_axis(Axis(0), own).to_owned()
    }

    /// Returns a view whose rows are each piece with its neighbors. The rows overlap in memory, so nothing is copied.
    fn neighbours<'a>(&self, row: &'a Array2<f32>, count: usize) -> ArrayView2<'a, f32> {
        let shape = (count, self.size * SEEN).strides((SEEN, 1));
        let numbers = row.as_slice().unwrap_or_default();
        ArrayView2::from_shape(shape, numbers).expect("as many rows as pieces, and their neighbours")
    }
}

//! Adapter that aligns query and tool vectors: one linear map per side, trained on query–tool pairs, whose output is
//! added to the vector.

use crate::DIMENSION;
use crate::file::ModelFile;
use crate::matrix::{QuantizedMatrix, WeightReader};

#[derive(Debug)]
pub(crate) struct Adapter {
    question: QuantizedMatrix,
    tool: QuantizedMatrix,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum AdapterSide {
    Question,
    Tool,
}

impl Adapter {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let mut numbers = WeightReader::new(file.adapter);
        Self { question: numbers.packed(DIMENSION, DIMENSION), tool: numbers.packed(DIMENSION, DIMENSION) }
    }

    pub(crate) fn align(&self, mut meaning: Vec<f32>, side: AdapterSide) -> Vec<f32> {
        let change = match side {
            AdapterSide::Question => &self.question,
            AdapterSide::Tool => &self.tool,
        };
        change.add_product(&meaning.clone(), &mut meaning);
        meaning
    }
}

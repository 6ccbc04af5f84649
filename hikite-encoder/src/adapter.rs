//! Adapter that aligns query and tool vectors: one linear map per side, trained on query–tool pairs, whose output is
//! added to the vector.

use crate::DIMENSION;
use crate::file::File;
use crate::matrix::{Numbers, Packed};

#[derive(Debug)]
pub(crate) struct Adapter {
    question: Packed,
    tool: Packed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Question,
    Tool,
}

impl Adapter {
    pub(crate) fn new(file: &File) -> Self {
        let mut numbers = Numbers::new(file.adapter);
        Self { question: numbers.packed(DIMENSION, DIMENSION), tool: numbers.packed(DIMENSION, DIMENSION) }
    }

    pub(crate) fn turn(&self, mut meaning: Vec<f32>, side: Side) -> Vec<f32> {
        let change = match side {
            Side::Question => &self.question,
            Side::Tool => &self.tool,
        };
        change.add_product(&meaning.clone(), &mut meaning);
        meaning
    }
}

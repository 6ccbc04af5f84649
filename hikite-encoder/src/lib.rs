//! A small multilingual sentence encoder with embedded weights. It reads no file, opens no socket and unpacks nothing
//! before the first text.

mod adapter;
mod file;
mod head;
mod matrix;
mod network;
mod normalise;
#[cfg(test)]
mod parity;
mod precomputed;
#[cfg(test)]
mod shipped;
mod table;
mod tokenizer;
mod trie;

use std::sync::LazyLock;

use hikite_core::search::encoder::{Encoder, Vector};

use adapter::{Adapter, AdapterSide};
use file::ModelFile;
use network::EncoderNetwork;
use tokenizer::PieceTokenizer;

/// Dimension of the vectors.
pub const DIMENSION: usize = 512;

/// Model name. It ends in a prefix of the hash of the weights, so that vectors of other weights are never reused.
const MODEL: &str = "use-multilingual-3-e5c97382";

/// Process-wide model; the weights are constant.
static ENCODER: LazyLock<EncoderModel> = LazyLock::new(EncoderModel::new);

/// universal-sentence-encoder-multilingual 3 with an adapter for tools. `model/README.md` documents its origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentenceEncoder;

impl SentenceEncoder {
    pub fn new() -> Self {
        Self
    }
}

impl Encoder for SentenceEncoder {
    fn model(&self) -> &str {
        MODEL
    }

    fn question(&self, text: &str) -> Vector {
        ENCODER.of(text, AdapterSide::Question)
    }

    fn tool(&self, text: &str) -> Vector {
        ENCODER.of(text, AdapterSide::Tool)
    }

    fn ready(&self, content: &str) -> Option<Vector> {
        precomputed::find(content)
    }
}

#[derive(Debug)]
struct EncoderModel {
    pieces: PieceTokenizer,
    network: EncoderNetwork,
    adapter: Adapter,
}

impl EncoderModel {
    fn new() -> Self {
        let file = ModelFile::read();
        Self { pieces: PieceTokenizer::new(&file), network: EncoderNetwork::new(&file), adapter: Adapter::new(&file) }
    }

    /// Encodes a text. A text without known pieces gets the zero vector, which is similar to nothing.
    fn of(&self, text: &str, side: AdapterSide) -> Vector {
        let rows = self.pieces.tokenize(text);
        if !self.pieces.has_content(&rows) {
            return Vector::of(&[0.0; DIMENSION]);
        }
        Vector::of(&self.adapter.align(self.network.read(&rows), side))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same_is_alike_in_every_language() {
        let encoder = SentenceEncoder::new();
        let question = encoder.question("ディスク上のファイルの中身を全部見せて");
        let near = encoder.tool("read text file: Read the complete contents of a file from the file system");
        let far = encoder.tool("get weather: The weather forecast of a city");
        assert!(question.similarity(&near) > question.similarity(&far) + 0.1);
        assert_eq!(question.dimension(), DIMENSION);
    }

    #[test]
    fn a_text_of_which_nothing_is_known_is_like_nothing() {
        let encoder = SentenceEncoder::new();
        let tool = encoder.tool("read file");
        for text in ["", "  \n", "ภาษาไทย", "\u{10ffff}\u{0}"] {
            assert_eq!(encoder.question(text).similarity(&tool).to_bits(), 0, "{text:?}");
        }
    }
}

//! A small encoder for questions and tools, in English and Japanese, with embedded weights. It reads no file, opens no
//! socket and unpacks nothing before the first text.

mod file;
mod japanese;
mod matrix;
mod network;
#[cfg(test)]
mod parity;
mod precomputed;
#[cfg(test)]
mod shipped;
mod strings;
mod tokenizer;
mod words;

use std::sync::LazyLock;

use hikite_core::search::encoder::{Encoder, Vector};

use file::ModelFile;
use network::EncoderNetwork;
use tokenizer::TextTokenizer;

/// Dimension of the vectors.
pub const DIMENSION: usize = 384;

/// Model name. It ends in a prefix of the hash of the weights, so that vectors of other weights are never reused.
const MODEL: &str = "hikite-tools-2-bd1abb96";

/// How many sequences of a long question are read. Of a tool it is one: what comes later is about details.
const QUESTION_WINDOWS: usize = 4;

/// Process-wide model; the weights are constant.
static ENCODER: LazyLock<EncoderModel> = LazyLock::new(EncoderModel::new);

/// The encoder trained for this project. `model/README.md` documents its origin.
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
        ENCODER.of(text, QUESTION_WINDOWS)
    }

    fn tool(&self, text: &str) -> Vector {
        ENCODER.of(text, 1)
    }

    fn ready(&self, content: &str) -> Option<Vector> {
        precomputed::find(content)
    }
}

#[derive(Debug)]
struct EncoderModel {
    tokenizer: TextTokenizer,
    network: EncoderNetwork,
}

impl EncoderModel {
    fn new() -> Self {
        let file = ModelFile::read();
        Self { tokenizer: TextTokenizer::new(&file), network: EncoderNetwork::new(&file) }
    }

    /// Encodes the first sequences of a text as their mean. A text without known pieces gets the zero vector, which is
    /// similar to nothing.
    fn of(&self, text: &str, windows: usize) -> Vector {
        let mut sum = vec![0.0; DIMENSION];
        for rows in self.tokenizer.tokenize(text).take(windows).filter(|rows| self.tokenizer.has_content(rows)) {
            for (sum, value) in sum.iter_mut().zip(self.network.read(&rows)) {
                *sum += value;
            }
        }
        Vector::of(&sum)
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

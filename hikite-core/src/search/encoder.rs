//! Embedding vectors of texts and their cosine similarity.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Encodes queries and tools into the same vector space.
pub trait Encoder: Send + Sync + std::fmt::Debug {
    /// Returns a name that changes whenever the vectors do. Vectors of different models must not be compared.
    fn model(&self) -> &str;

    fn question(&self, text: &str) -> Vector;

    fn tool(&self, text: &str) -> Vector;

    /// Returns a precomputed vector of a tool's text, if there is one. `content` is the SHA-256 of the text in hex.
    fn ready(&self, content: &str) -> Option<Vector> {
        let _ = content;
        None
    }
}

/// An embedding quantised to signed bytes. Only its direction matters, not its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    values: Box<[i8]>,
    /// Dot product with itself, so that a similarity costs only one product.
    square: i64,
}

impl Vector {
    /// Quantises a vector: the largest absolute value becomes ±127.
    pub fn of(values: &[f32]) -> Self {
        let largest =
            values.iter().filter(|value| value.is_finite()).fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        Self::from_bytes(values.iter().map(|value| byte(value * scale)).collect())
    }

    /// Restores a vector from its bytes.
    pub fn from_bytes(values: Box<[i8]>) -> Self {
        let square = product(&values, &values);
        Self { values, square }
    }

    pub fn bytes(&self) -> &[i8] {
        &self.values
    }

    /// Returns the cosine similarity of two vectors of one model, -1 to 1; 0 for a zero vector or different dimensions.
    pub fn similarity(&self, other: &Self) -> f32 {
        if self.square == 0 || other.square == 0 || self.dimension() != other.dimension() {
            return 0.0;
        }
        as_f32(product(&self.values, &other.values)) / (as_f32(self.square).sqrt() * as_f32(other.square).sqrt())
    }

    pub fn dimension(&self) -> usize {
        self.values.len()
    }

    /// Encodes the vector as base64, for a text column.
    pub fn to_text(&self) -> String {
        STANDARD_NO_PAD.encode(self.values.iter().map(|value| value.cast_unsigned()).collect::<Vec<u8>>())
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = STANDARD_NO_PAD.decode(text).ok()?;
        Some(Self::from_bytes(bytes.into_iter().map(u8::cast_signed).collect()))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 127 by its scale; what is not a number becomes 0")]
fn byte(value: f32) -> i8 {
    value.round() as i8
}

/// Sums in chunks that cannot overflow 32 bits, because processors vectorise 32-bit multiplication.
fn product(a: &[i8], b: &[i8]) -> i64 {
    const PIECE: usize = 4096;
    let pieces = a.chunks(PIECE).zip(b.chunks(PIECE));
    pieces.map(|(a, b)| i64::from(a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>())).sum()
}

#[expect(clippy::cast_precision_loss, reason = "seven digits are more than a likeness needs")]
fn as_f32(sum: i64) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_most_like_its_own_direction() {
        let east = Vector::of(&[3.0, 0.0, 4.0]);
        let same = Vector::of(&[0.3, 0.0, 0.4]);
        assert_eq!(east, same);
        assert!((east.similarity(&same) - 1.0).abs() < 1e-6);
        assert!((east.similarity(&Vector::of(&[-3.0, 0.0, -4.0])) + 1.0).abs() < 1e-6);
        assert!(east.similarity(&Vector::of(&[0.0, 1.0, 0.0])).abs() < 1e-6);
    }

    #[test]
    fn bytes_keep_the_likeness_of_numbers() {
        let wave = |step: f32| (0..512_u16).map(|at| (f32::from(at) * step).sin()).collect::<Vec<f32>>();
        let exact = |a: &[f32], b: &[f32]| {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
        };
        for step in [0.1, 0.101, 0.103, 0.2] {
            let (a, b) = (wave(0.1), wave(step));
            let error = Vector::of(&a).similarity(&Vector::of(&b)) - exact(&a, &b);
            assert!(error.abs() < 2e-3, "{step}: {error}");
        }
    }

    #[test]
    fn nothing_is_like_zeros_or_another_dimension() {
        let some = Vector::of(&[1.0, 2.0]);
        assert_eq!(some.similarity(&Vector::of(&[0.0, 0.0])).to_bits(), 0);
        assert_eq!(some.similarity(&Vector::of(&[1.0, 2.0, 3.0])).to_bits(), 0);
        assert_eq!(Vector::of(&[f32::NAN, f32::INFINITY, 1.0]).bytes(), [0, 127, 127]);
    }

    #[test]
    fn text_and_back_is_the_same_vector() {
        let vector = Vector::of(&[0.5, -1.0, 0.25, 0.0, 0.1]);
        assert_eq!(Vector::from_text(&vector.to_text()), Some(vector));
        assert_eq!(Vector::from_text("not base64!"), None);
        let longest = Vector::from_bytes(vec![-128; 200_000].into());
        assert!((longest.similarity(&longest) - 1.0).abs() < 1e-6);
    }
}

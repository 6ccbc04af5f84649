//! Lowercase hexadecimal encoding.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    let text: Vec<[u8; 2]> = bytes.iter().map(digits).collect();
    // Hexadecimal digits are valid UTF-8.
    String::from_utf8(text.into_flattened()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 9, 0x0a, 0x7f, 0xf0, 0xff]), "00090a7ff0ff");
    }
}

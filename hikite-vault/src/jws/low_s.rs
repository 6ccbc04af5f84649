//! The two valid forms of an ECDSA signature: `s` and `n - s`, where `n` is the order of P-256. The lower one is at
//! most `n / 2`. Signatures are public, so constant time is not needed.

/// Order of the P-256 group, from FIPS 186-4.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];
/// Half of the order, rounded down.
const HALF: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0x80, 0x00, 0x00, 0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xde, 0x73, 0x7d,
    0x56, 0xd3, 0x8b, 0xcf, 0x42, 0x79, 0xdc, 0xe5, 0x61, 0x7e, 0x31, 0x92, 0xa8,
];

/// Returns `true` if this is a fixed-length signature, `r` then `s`, with the lower `s`.
pub(super) fn is_low(signature: &[u8]) -> bool {
    signature.get(32..).is_some_and(|s| s.len() == 32 && *s <= HALF[..])
}

/// Replaces `s` by `n - s`.
pub(super) fn flip(signature: &mut [u8]) {
    let Some(s) = signature.get_mut(32..64) else { return };
    let mut borrow = false;
    for (byte, order) in s.iter_mut().zip(ORDER).rev() {
        let (difference, first) = order.overflowing_sub(*byte);
        let (difference, second) = difference.overflowing_sub(u8::from(borrow));
        (*byte, borrow) = (difference, first || second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_low_or_its_twin_is() {
        let with = |s: [u8; 32]| [[7; 32], s].concat();
        let one = {
            let mut s = [0; 32];
            s[31] = 1;
            s
        };
        for (s, low) in [(one, true), (HALF, true), (ORDER, false), ([0xff; 32], false)] {
            assert_eq!(is_low(&with(s)), low, "{s:02x?}");
        }
        let mut twin = with(HALF);
        flip(&mut twin);
        assert!(!is_low(&twin), "n is odd: the half above begins right after it");
        flip(&mut twin);
        assert_eq!(twin, with(HALF));
        for wrong in [&[][..], &[0; 63], &[0; 65], &[0; 32]] {
            assert!(!is_low(wrong));
        }
    }
}

//! Numbers as the format wants them: shortest digits, no zeros at the end, no exponent where people would not write
//! one either. Whole numbers of 64 bits are exact.

use std::fmt::Write as _;

use serde_json::Number;

/// Powers of ten from here up to below [`LARGE`] are written out; JavaScript's exponents are used for the others.
const SMALL: i32 = -6;
const LARGE: i32 = 21;

/// Of the largest number of 64 bits.
const DIGITS_MAX: usize = 20;

pub(super) fn push(number: &Number, out: &mut String) {
    if let Some(whole) = number.as_u64() {
        push_unsigned(whole, out);
    } else if let Some(whole) = number.as_i64() {
        out.push('-');
        push_unsigned(whole.unsigned_abs(), out);
    } else {
        push_float(number, out);
    }
}

pub(super) fn push_unsigned(number: u64, out: &mut String) {
    let mut digits = [0; DIGITS_MAX];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[start..]).unwrap_or_default());
}

/// The digits are those of `serde_json`: of two that are equally near it takes the even one, as JavaScript does and
/// `std` does not.
fn push_float(number: &Number, out: &mut String) {
    let start = out.len();
    // A text takes whatever is written.
    let _ = write!(out, "{number}");
    let text = &out[start..];
    if let Some((digits, exponent)) = text.split_once('e') {
        let (digits, exponent) = (digits.to_owned(), exponent.parse().unwrap_or_default());
        out.truncate(start);
        push_with_exponent(&digits, exponent, out);
    } else if text == "-0.0" {
        out.replace_range(start.., "0");
    } else if text.ends_with(".0") {
        out.truncate(out.len() - 2);
    }
}

/// Digits like `-1.25`, times a power of ten.
fn push_with_exponent(digits: &str, exponent: i32, out: &mut String) {
    if !(SMALL..LARGE).contains(&exponent) {
        let sign = if exponent > 0 { "+" } else { "" };
        let _ = write!(out, "{digits}e{sign}{exponent}");
        return;
    }
    let (digits, sign) = digits.strip_prefix('-').map_or((digits, ""), |digits| (digits, "-"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let zeros = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    let _ = if exponent < 0 {
        write!(out, "{sign}0.{whole:0>zeros$}{fraction}")
    } else {
        write!(out, "{sign}{whole}{fraction:0<zeros$}")
    };
}

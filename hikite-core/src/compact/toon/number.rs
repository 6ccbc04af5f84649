//! Formats numbers as TOON requires: shortest digits, no trailing zeros, exponents only for very large and very small
//! numbers. 64-bit integers are exact.

use std::fmt::Write as _;

use serde_json::Number;

/// Exponents from `SMALL` up to below [`LARGE`] are written out as digits; others use JavaScript's notation.
const SMALL: i32 = -6;
const LARGE: i32 = 21;

/// Digits of the largest 64-bit integer.
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

/// Formats a float with the digits of `serde_json`: of two equally near results it picks the even one, as JavaScript
/// does and `std` does not.
fn push_float(number: &Number, out: &mut String) {
    let start = out.len();
    // Writing to a string cannot fail.
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

/// Writes digits such as `-1.25` times a power of ten.
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

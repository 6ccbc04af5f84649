//! Writes program output as JSON. NaN and infinity become null, bytes become text, and non-string keys become the text
//! of their JSON.

use hikite_core::json::{Raw, write_string};
use jaq_json::{Num, Val};

use super::JqError;

/// Whole floats below this are written without a decimal point: a double is exact here.
const EXACT: f64 = 1e15;

#[derive(Debug)]
pub(super) struct JqOutputWriter {
    pub(super) out: Vec<u8>,
    most: usize,
}

impl JqOutputWriter {
    pub(super) fn new(most: usize) -> Self {
        Self { out: Vec::new(), most }
    }

    pub(super) fn value(&mut self, value: &Val) -> Result<(), JqError> {
        match value {
            Val::Null => self.out.extend(b"null"),
            Val::Bool(flag) => self.out.extend(if *flag { &b"true"[..] } else { b"false" }),
            Val::Num(number) => self.number(number),
            Val::TStr(text) | Val::BStr(text) => write_string(&String::from_utf8_lossy(text), &mut self.out),
            Val::Arr(items) => {
                self.out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.value(item)?;
                }
                self.out.push(b']');
            }
            Val::Obj(members) => {
                self.out.push(b'{');
                for (at, (name, member)) in members.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.name(name)?;
                    self.out.push(b':');
                    self.value(member)?;
                }
                self.out.push(b'}');
            }
        }
        if self.out.len() > self.most { Err(JqError::TooLong) } else { Ok(()) }
    }

    fn name(&mut self, name: &Val) -> Result<(), JqError> {
        if let Val::TStr(_) | Val::BStr(_) = name {
            return self.value(name);
        }
        let mut inner = Self::new(self.most);
        inner.value(name)?;
        write_string(&String::from_utf8_lossy(&inner.out), &mut self.out);
        Ok(())
    }

    fn number(&mut self, number: &Num) {
        let text = match number {
            Num::Int(whole) => whole.to_string(),
            Num::BigInt(whole) => whole.to_string(),
            Num::Float(float) => of_float(*float),
            // Preserved as written if that is valid JSON.
            Num::Dec(text) => match Raw::parse(text.to_string()) {
                Ok(_) => text.to_string(),
                Err(_) => of_float(text.parse().unwrap_or(f64::NAN)),
            },
        };
        self.out.extend(text.as_bytes());
    }
}

fn of_float(float: f64) -> String {
    if !float.is_finite() {
        return "null".to_owned();
    }
    if float.fract() == 0.0 && float.abs() < EXACT {
        return format!("{float:.0}");
    }
    format!("{float:?}")
}

//! The `if` condition of a task: references and literals, compared with each other and joined by `&&`, `||`, `!` and
//! parentheses. There is no arithmetic and there are no functions.

mod parse;

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::reference::{Names, Reference, kind, too_many_looks};
use super::template::LOOKS_MAX;
use super::{Missing, Scope};

/// Bytes of a string that count as one visited value.
const TEXT_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Expression);

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Compare(Operand, Comparison, Operand),
    /// True unless the value is null, false, zero or empty.
    Says(Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Reference(Reference),
    Plain(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

impl Condition {
    /// Parses a condition and adds the tasks it references to `after`. The error names the problem and its column.
    pub(super) fn read(text: &str, names: Names<'_>, after: &mut Vec<usize>) -> Result<Self, String> {
        parse::parse(text, names, after).map(Self)
    }

    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, Missing> {
        self.0.holds(scope, &Cell::new(LOOKS_MAX))
    }
}

impl Expression {
    fn holds(&self, scope: &Scope<'_>, looks: &Cell<usize>) -> Result<bool, Missing> {
        match self {
            // Short-circuits: references that are not needed are not resolved.
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(scope, looks)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(scope, looks)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(part) => Ok(!part.holds(scope, looks)?),
            Self::Says(operand) => Ok(says(&*operand.find(scope, looks)?)),
            Self::Compare(left, comparison, right) => {
                let (left, right) = (left.find(scope, looks)?, right.find(scope, looks)?);
                compare(&left, *comparison, &right, looks)
            }
        }
    }
}

impl Operand {
    fn find<'v, 'a: 'v>(&'v self, scope: &Scope<'a>, looks: &Cell<usize>) -> Result<Cow<'v, Value>, Missing> {
        match self {
            Self::Reference(reference) => reference.find(scope, looks),
            Self::Plain(value) => Ok(Cow::Borrowed(value)),
        }
    }
}

impl Comparison {
    const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::Different),
        ("<=", Self::LessOrEqual),
        (">=", Self::MoreOrEqual),
        ("<", Self::Less),
        (">", Self::More),
    ];

    fn orders(self) -> bool {
        !matches!(self, Self::Equal | Self::Different)
    }
}

fn says(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Compares two values. Ordering against null is always false; ordering values of different types is an error.
fn compare(
    left: &Value,
    comparison: Comparison,
    right: &Value,
    looks: &Cell<usize>,
) -> Result<bool, Missing> {
    let order = match (left, right) {
        _ if !comparison.orders() => {
            let equal = equal(left, right, looks);
            if looks.get() == 0 {
                return Err(too_many_looks());
            }
            return Ok(equal == (comparison == Comparison::Equal));
        }
        (Value::Null, _) | (_, Value::Null) => return Ok(false),
        (Value::Number(left), Value::Number(right)) => order(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => {
            return Err(Missing {
                message: format!("`if` asks for the order of {} and {}", kind(left), kind(right)),
                hint: "only two numbers or two texts have an order; compare others with `==` or `!=`".into(),
            });
        }
    };
    Ok(order.is_some_and(|order| match comparison {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::More => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// Compares deeply; numbers compare by value, not by spelling. Each compared value uses up one visit.
fn equal(left: &Value, right: &Value, looks: &Cell<usize>) -> bool {
    let Some(rest) = looks.get().checked_sub(1) else { return false };
    looks.set(rest);
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right, looks))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|other| equal(value, other, looks))
            };
            left.len() == right.len() && left.iter().all(same)
        }
        (Value::String(left), Value::String(right)) => {
            looks.set(rest.saturating_sub(left.len() / TEXT_BYTES));
            left == right
        }
        _ => left == right,
    }
}

fn order(left: &Number, right: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

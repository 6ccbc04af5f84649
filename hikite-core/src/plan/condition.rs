//! The `if` condition of a task: references and literals, compared with each other and joined by `&&`, `||`, `!` and
//! parentheses. There is no arithmetic and there are no functions.

mod parser;

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::reference::{KnownNames, TaskReference, kind, too_many_visits};
use super::template::VISITS_MAX;
use super::{ReferenceScope, UnresolvedReference};

/// Bytes of a string that count as one visited value.
const TEXT_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub struct TaskCondition(ConditionExpression);

#[derive(Clone, Debug, PartialEq)]
enum ConditionExpression {
    All(Vec<ConditionExpression>),
    Any(Vec<ConditionExpression>),
    Not(Box<ConditionExpression>),
    Compare(Operand, Comparison, Operand),
    /// True unless the value is null, false, zero or empty.
    Truthy(Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Reference(TaskReference),
    Plain(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl TaskCondition {
    /// Parses a condition and adds the tasks it references to `after`. The error names the problem and its column.
    pub(super) fn read(text: &str, names: KnownNames<'_>, after: &mut Vec<usize>) -> Result<Self, String> {
        parser::parse(text, names, after).map(Self)
    }

    pub fn holds(&self, scope: &ReferenceScope<'_>) -> Result<bool, UnresolvedReference> {
        self.0.holds(scope, &Cell::new(VISITS_MAX))
    }
}

impl ConditionExpression {
    fn holds(&self, scope: &ReferenceScope<'_>, visits: &Cell<usize>) -> Result<bool, UnresolvedReference> {
        match self {
            // Short-circuits: references that are not needed are not resolved.
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(scope, visits)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(scope, visits)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(part) => Ok(!part.holds(scope, visits)?),
            Self::Truthy(operand) => Ok(is_truthy(&*operand.find(scope, visits)?)),
            Self::Compare(left, comparison, right) => {
                let (left, right) = (left.find(scope, visits)?, right.find(scope, visits)?);
                compare(&left, *comparison, &right, visits)
            }
        }
    }
}

impl Operand {
    fn find<'v, 'a: 'v>(
        &'v self,
        scope: &ReferenceScope<'a>,
        visits: &Cell<usize>,
    ) -> Result<Cow<'v, Value>, UnresolvedReference> {
        match self {
            Self::Reference(reference) => reference.find(scope, visits),
            Self::Plain(value) => Ok(Cow::Borrowed(value)),
        }
    }
}

impl Comparison {
    const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
    ];

    fn is_ordering(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }
}

fn is_truthy(value: &Value) -> bool {
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
    visits: &Cell<usize>,
) -> Result<bool, UnresolvedReference> {
    let order = match (left, right) {
        _ if !comparison.is_ordering() => {
            let equal = equal(left, right, visits);
            if visits.get() == 0 {
                return Err(too_many_visits());
            }
            return Ok(equal == (comparison == Comparison::Equal));
        }
        (Value::Null, _) | (_, Value::Null) => return Ok(false),
        (Value::Number(left), Value::Number(right)) => order(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => {
            return Err(UnresolvedReference {
                message: format!("`if` cannot compare {} and {} by order.", kind(left), kind(right)),
                hint: "Only two numbers or two strings have an order; compare other values with `==` or `!=`.".into(),
            });
        }
    };
    Ok(order.is_some_and(|order| match comparison {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// Compares deeply; numbers compare by value, not by spelling. Each compared value uses up one visit.
fn equal(left: &Value, right: &Value, visits: &Cell<usize>) -> bool {
    let Some(rest) = visits.get().checked_sub(1) else { return false };
    visits.set(rest);
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right, visits))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same =
                |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| equal(value, other, visits));
            left.len() == right.len() && left.iter().all(same)
        }
        (Value::String(left), Value::String(right)) => {
            visits.set(rest.saturating_sub(left.len() / TEXT_BYTES));
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

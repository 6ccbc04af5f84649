//! Value template of a request: a variable, an expression, or a literal with nested templates. Null members are left
//! out.

use hikite_core::error::Error;
use serde_json::{Map, Value};

use crate::expression::{Expression, ExpressionNames};
use crate::scope::VariableScope;

#[derive(Debug)]
pub(crate) enum ValueTemplate {
    Fixed(Value),
    Expression(Expression),
    Object(Vec<(String, ValueTemplate)>),
    List(Vec<ValueTemplate>),
}

impl ValueTemplate {
    pub(crate) fn new(written: &Value, names: &ExpressionNames) -> Self {
        match written {
            Value::String(text) => match text.strip_prefix('=') {
                Some(program) => Self::Expression(Expression::new(program, names)),
                None if is_variable(text, names) => Self::Expression(Expression::new(text, names)),
                None => Self::Fixed(written.clone()),
            },
            Value::Object(members) => {
                let value_template = |(name, value): (&String, &Value)| (name.clone(), Self::new(value, names));
                Self::Object(members.iter().map(value_template).collect())
            }
            Value::Array(items) => Self::List(items.iter().map(|item| Self::new(item, names)).collect()),
            other => Self::Fixed(other.clone()),
        }
    }

    pub(crate) fn fill(&self, scope: &VariableScope<'_>) -> Result<Value, Error> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Expression(expression) => expression.one(&Value::Null, scope),
            Self::Object(slots) => {
                let mut members = Map::new();
                for (name, value_template) in slots {
                    let value = value_template.fill(scope)?;
                    if !value.is_null() {
                        members.insert(name.clone(), value);
                    }
                }
                Ok(Value::Object(members))
            }
            Self::List(slots) => slots.iter().map(|value_template| value_template.fill(scope)).collect(),
        }
    }

    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        match self {
            Self::Fixed(_) => {}
            Self::Expression(expression) => found.push(expression),
            Self::Object(slots) => {
                for (_, value_template) in slots {
                    value_template.expressions(found);
                }
            }
            Self::List(slots) => slots.iter().for_each(|value_template| value_template.expressions(found)),
        }
    }
}

fn is_variable(text: &str, names: &ExpressionNames) -> bool {
    text.strip_prefix('$').is_some_and(|name| names.variables.contains(name))
}

//! Parser for task conditions: `${a.n} > 0 && (${b.state} == "open" || !${c.done?})`.

use serde_json::Value;

use super::{Comparison, ConditionExpression, Operand};
use crate::plan::reference::{self, KnownNames, SyntaxProblem, TaskReference, quoted, shortened};

/// Deepest nesting of parentheses and `!`.
const NESTED_MAX: usize = 32;

pub(super) fn parse(text: &str, names: KnownNames<'_>, after: &mut Vec<usize>) -> Result<ConditionExpression, String> {
    let mut reader = ConditionParser { text, at: 0, left: NESTED_MAX, names, after };
    let outcome = reader.any().and_then(|expression| {
        reader.skip_blanks();
        if reader.rest().is_empty() { Ok(expression) } else { Err(reader.unexpected()) }
    });
    outcome.map_err(|problem| {
        let column = text[..problem.at].chars().count() + 1;
        format!("is not valid at column {column}: {}", problem.message)
    })
}

struct ConditionParser<'a, 'b> {
    text: &'a str,
    at: usize,
    left: usize,
    names: KnownNames<'b>,
    after: &'b mut Vec<usize>,
}

impl<'a> ConditionParser<'a, '_> {
    fn any(&mut self) -> Result<ConditionExpression, SyntaxProblem> {
        let mut parts = vec![self.all()?];
        while self.take("||") {
            parts.push(self.all()?);
        }
        Ok(joined(parts, ConditionExpression::Any))
    }

    fn all(&mut self) -> Result<ConditionExpression, SyntaxProblem> {
        let mut parts = vec![self.part()?];
        while self.take("&&") {
            parts.push(self.part()?);
        }
        Ok(joined(parts, ConditionExpression::All))
    }

    fn part(&mut self) -> Result<ConditionExpression, SyntaxProblem> {
        self.skip_blanks();
        if self.rest().starts_with("!=") || !self.take("!") {
            return self.comparison();
        }
        let inner = self.nested(|reader| {
            reader.skip_blanks();
            if reader.rest().starts_with(['(', '!']) {
                reader.part()
            } else {
                Ok(ConditionExpression::Truthy(reader.operand()?))
            }
        })?;
        if self.peek_comparison().is_some() {
            return Err(self.problem("`!` is ambiguous here; write `!(… == …)` or `!=`"));
        }
        Ok(ConditionExpression::Not(Box::new(inner)))
    }

    fn comparison(&mut self) -> Result<ConditionExpression, SyntaxProblem> {
        if self.take("(") {
            let inner = self.nested(Self::any)?;
            if !self.take(")") {
                return Err(self.problem("`(` without a matching `)`"));
            }
            if self.peek_comparison().is_some() {
                return Err(self.problem("an expression in parentheses is true or false and cannot be compared"));
            }
            return Ok(inner);
        }
        let left = self.operand()?;
        let Some((word, comparison)) = self.peek_comparison() else {
            return Ok(ConditionExpression::Truthy(left));
        };
        let at = self.at;
        self.at += word.len();
        let right = self.operand()?;
        let unordered = |operand: &Operand| matches!(operand, Operand::Plain(Value::Null | Value::Bool(_)));
        if comparison.is_ordering() && (unordered(&left) || unordered(&right)) {
            return Err(SyntaxProblem::new(
                at,
                format!("`{word}` compares only numbers and strings; use `==` or `!=`"),
            ));
        }
        Ok(ConditionExpression::Compare(left, comparison, right))
    }

    fn operand(&mut self) -> Result<Operand, SyntaxProblem> {
        self.skip_blanks();
        let rest = self.rest();
        if rest.starts_with("${") {
            return self.reference();
        }
        if rest.starts_with(['"', '\'']) {
            let (text, length) =
                quoted(rest).ok_or_else(|| self.problem("a quoted string is not terminated or not valid"))?;
            if text.replace("$${", "").contains("${") {
                return Err(self.problem("write a reference without quotes: `${a.state} == \"open\"`"));
            }
            self.at += length;
            return Ok(Operand::Plain(text.replace("$${", "${").into()));
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '-' | '.' | '_'));
        let word = &rest[..end.unwrap_or(rest.len())];
        match serde_json::from_str::<Value>(word) {
            Ok(value) => {
                self.at += word.len();
                Ok(Operand::Plain(value))
            }
            Err(_) => Err(self.unexpected()),
        }
    }

    fn reference(&mut self) -> Result<Operand, SyntaxProblem> {
        let start = self.at;
        let written =
            reference::parse(self.rest()).map_err(|problem| SyntaxProblem::new(start + problem.at, problem.message))?;
        self.at += written.length;
        let linked = TaskReference::link(written, self.names).map_err(|message| SyntaxProblem::new(start, message))?;
        // A batch with an unreadable task is never run, so any value will do.
        let Some(reference) = linked else { return Ok(Operand::Plain(Value::Null)) };
        self.after.extend(reference.task());
        Ok(Operand::Reference(reference))
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, SyntaxProblem>) -> Result<T, SyntaxProblem> {
        self.left = self.left.checked_sub(1).ok_or_else(|| self.problem("it is nested too deeply"))?;
        let outcome = read(self);
        self.left += 1;
        outcome
    }

    fn peek_comparison(&mut self) -> Option<(&'static str, Comparison)> {
        self.skip_blanks();
        let found = Comparison::ALL.into_iter().find(|(word, _)| self.rest().starts_with(word));
        found.filter(|(word, _)| !self.rest()[word.len()..].starts_with('='))
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn problem(&self, message: impl Into<String>) -> SyntaxProblem {
        SyntaxProblem::new(self.at, message)
    }

    /// Reports an unexpected token, with a suggestion where one is known.
    fn unexpected(&self) -> SyntaxProblem {
        const CORRECTIONS: &[(&str, &str)] =
            &[("and", "&&"), ("or", "||"), ("not", "!"), ("===", "=="), ("=", "=="), ("&", "&&"), ("|", "||")];
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return self.problem("a reference or a value is expected at the end");
        };
        let end = rest.find(|c: char| first.is_alphanumeric() != c.is_alphanumeric() || c.is_whitespace());
        let word = shortened(&rest[..end.unwrap_or(rest.len())]);
        if let Some((_, meant)) = CORRECTIONS.iter().find(|(wrong, _)| word.eq_ignore_ascii_case(wrong)) {
            return self.problem(format!("write `{meant}` instead of `{word}`"));
        }
        if first.is_alphanumeric() {
            return self
                .problem(format!("`{word}` is not a value: quote strings, and write references as `${{task.key}}`"));
        }
        let forms = "a condition is `${a.n} > 0`, `${a.state} == \"open\"`, joined by `&&`, `||`, `!`";
        self.problem(format!("unexpected `{}`: {forms}", first.escape_debug()))
    }
}

fn joined(
    mut parts: Vec<ConditionExpression>,
    join: fn(Vec<ConditionExpression>) -> ConditionExpression,
) -> ConditionExpression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

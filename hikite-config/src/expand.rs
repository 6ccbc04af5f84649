//! Expands variables in strings: `${NAME}`, `${NAME:-default}` and the `${env:NAME}` of other clients. `$${` is a
//! literal `${`. Values are not expanded again.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    #[error("`${{{0}}}` is not a variable")]
    NotAVariable(String),
    #[error("`${{` is not closed")]
    Open,
}

impl ExpandError {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Unset(name) => format!("Set it, or give it a default: `${{{name}:-…}}`."),
            Self::NotAVariable(_) => {
                "Write a variable as `${NAME}` or `${NAME:-default}`, and a literal `${` as `$${`.".into()
            }
            Self::Open => "Add the `}`, or write a literal `${` as `$${`.".into(),
        }
    }
}

pub(crate) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let (variable, tail) = after.split_once('}').ok_or(ExpandError::Open)?;
        out.push_str(&look_up(variable, env)?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

/// Looks up a variable. The default also replaces an empty value, as in a shell.
fn look_up(variable: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let (name, default) = match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(ExpandError::NotAVariable(variable.into()));
    }
    let value = env(name);
    match default {
        Some(default) => Ok(value.filter(|value| !value.is_empty()).unwrap_or_else(|| default.into())),
        None => value.ok_or_else(|| ExpandError::Unset(name.into())),
    }
}

/// Escapes text for a template.
pub(crate) fn literal(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let env = |name: &str| match name {
            "A" => Some("${B}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let found = expand(text, &env).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn variables_defaults_and_literals() {
        check("x ${A} y", Ok("x ${B} y"));
        check("${env:A}${A}", Ok("${B}${B}"));
        check("${NO:-a:-b}${EMPTY:-c}${EMPTY}", Ok("a:-bc"));
        check("$${A} $$${A} $5 $", Ok("${A} $${A} $5 $"));
        check("${NO}", Err("the environment variable `NO` is not set"));
        check("${input:key}", Err("`${input:key}` is not a variable"));
        check("${}", Err("`${}` is not a variable"));
        check("a ${A", Err("`${` is not closed"));
    }
}

//! Path to the result in a JSON response: `data.items[0]`, or a JSON Pointer.

use hikite_core::json::Raw;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultPath {
    written: Box<str>,
    steps: Vec<Box<str>>,
}

impl ResultPath {
    pub(crate) fn parse(written: &str) -> Option<Self> {
        let steps = if let Some(pointer) = written.strip_prefix('/') {
            pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~").into()).collect()
        } else {
            dotted(written)?
        };
        Some(Self { written: written.into(), steps })
    }

    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// Returns the value at the path. A number is an index in a list, counted from its end if negative, and a name in
    /// an object.
    pub(crate) fn find(&self, answer: &Raw) -> Option<Raw> {
        let mut value = answer.clone();
        for step in &self.steps {
            value = if value.bytes().first() == Some(&b'[') {
                let items = value.items()?;
                let index = match step.strip_prefix('-') {
                    Some(back) => items.len().checked_sub(back.parse().ok()?)?,
                    None => step.parse().ok()?,
                };
                items.get(index)?.clone()
            } else {
                value.object()?.get(step)?.clone()
            };
        }
        Some(value)
    }
}

/// Parses names separated by dots, each followed by any number of `[index]` or `["name"]`.
fn dotted(written: &str) -> Option<Vec<Box<str>>> {
    let mut steps: Vec<Box<str>> = Vec::new();
    let mut rest = written;
    loop {
        let name = &rest[..rest.find(['.', '[']).unwrap_or(rest.len())];
        rest = &rest[name.len()..];
        if !name.is_empty() {
            steps.push(name.into());
        } else if !rest.starts_with('[') {
            return None;
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = if let Some(quoted) = inner.strip_prefix('"') {
                quoted.split_once("\"]")?
            } else {
                let (index, after) = inner.split_once(']')?;
                index.parse::<i64>().ok()?;
                (index, after)
            };
            steps.push(step.into());
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        let answer = r#"{"data":{"items":[{"id":1},{"id":2}],"a.b":{"c/d":3},"0":4},"n":null}"#;
        let answer = Raw::parse(answer).expect("valid");
        let found = ResultPath::parse(path).unwrap_or_else(|| panic!("{path}")).find(&answer);
        assert_eq!(found.map(|raw| raw.as_str().into_owned()).as_deref(), expected, "{path}");
    }

    #[test]
    fn both_ways_of_writing_lead_there() {
        check("data.items[0].id", Some("1"));
        check("data.items.1", Some(r#"{"id":2}"#));
        check("data.items[-1].id", Some("2"));
        check("data[\"a.b\"]", Some(r#"{"c/d":3}"#));
        check("/data/items/1/id", Some("2"));
        check("/data/a.b/c~1d", Some("3"));
        check("data.0", Some("4"));
        check("n", Some("null"));
        check("data.items[2]", None);
        check("data.items[-3]", None);
        check("n.x", None);
        check("no", None);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for bad in ["", ".", "a.", "a..b", "a[", "a[x]", "a[\"x]", "a]b[", "a[0]b"] {
            assert!(ResultPath::parse(bad).is_none(), "{bad}");
        }
    }
}

//! Selectors: the part of a result that a caller asks for, as a field list, a path, or a jq program. Field lists and
//! paths are evaluated here; jq runs elsewhere, where it can be stopped.

mod field;
mod path;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::json::Raw;
use crate::source::BoxFuture;

pub use field::FieldList;
pub use path::ValuePath;

/// Longest selector, in bytes.
pub const TEXT_MAX: usize = 4000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A field list: `number,title,user.login,labels[].name`
    Fields(FieldList),
    /// A path to exactly one value, evaluated like jq: `.items[0].title`
    Path(ValuePath),
    Jq(Arc<str>),
}

impl Selector {
    /// Parses a selector. Text that begins with a dot is never a field list. The error continues a sentence that begins
    /// with the field's name. jq programs are not checked.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("must be a list of fields (`title,user.login`) or a jq program (`.items[0]`)".into());
        }
        if text.len() > TEXT_MAX {
            return Err(format!("is longer than {TEXT_MAX} bytes"));
        }
        if text.starts_with('.') {
            let path = ValuePath::parse(text).ok().filter(ValuePath::is_single);
            return Ok(path.map_or_else(|| Self::Jq(text.into()), Self::Path));
        }
        match FieldList::read(text) {
            Ok(fields) => fields.check_limits().map(Self::Fields),
            Err(_) => Ok(Self::Jq(text.into())),
        }
    }
}

/// A selected part that does not exist, explained for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    pub message: String,
    pub hint: String,
}

impl From<MissingPart> for Error {
    fn from(missing: MissingPart) -> Self {
        Self { hint: Some(missing.hint.into()), ..Self::new(ErrorKind::Validation, missing.message) }
    }
}

/// Runs untrusted jq programs within limits of time, memory and output.
pub trait JqRunner: Send + Sync + fmt::Debug {
    /// Runs a program. Returns a single output as it is, several as an array, none as null.
    fn run(&self, program: Arc<str>, input: Raw) -> BoxFuture<'_, Result<Raw, Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let kind = match Selector::parse(text) {
            Ok(Selector::Fields(_)) => "fields",
            Ok(Selector::Path(_)) => "path",
            Ok(Selector::Jq(_)) => "jq",
            Err(_) => "wrong",
        };
        assert_eq!(kind, expected, "{text}");
    }

    #[test]
    fn names_with_commas_between_them_are_fields() {
        for text in [
            "title",
            "number, title,\n user.login",
            "labels[].name",
            "[].name",
            r#""a.b",c"#,
            r#"meta."x y"[0].z"#,
            "題名,作成者.名前",
            "@type,$id,created-at,xml:lang",
            "length",
            "1,2",
        ] {
            check(text, "fields");
        }
    }

    #[test]
    fn what_begins_with_a_dot_and_leads_to_one_value_is_a_path() {
        for text in [".", " .a ", ".a.b[0][\"x\"]", ".[0]", ".[-1].a", ".\"a b\".c", "._x9", ".題名", r#".["a","b"]"#]
        {
            check(text, if text.contains(',') { "jq" } else { "path" });
        }
    }

    #[test]
    fn everything_else_is_left_to_jq() {
        for text in [
            ".[]",
            ".a[]",
            ".a[].b",
            "..",
            ".a.",
            ".a?",
            ".a[1:3]",
            ".a | length",
            ".a-b",
            ".9",
            "[.[] | .a]",
            "{a,b}",
            "map(.x)",
            "keys | length",
            "a b",
            "a,",
            ",a",
            "a..b",
            "a[x]",
            "[]",
            "\"a\\(.b)\"",
            ".\"a\\(.b)\"",
            "-1 ; 2",
        ] {
            check(text, "jq");
        }
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        check("", "wrong");
        check("  \n", "wrong");
        check(&"x".repeat(TEXT_MAX + 1), "wrong");
        check(&"x".repeat(TEXT_MAX), "fields");
        check(&vec!["f"; 200].join(","), "fields");
        check(&vec!["f"; 201].join(","), "wrong");
    }
}

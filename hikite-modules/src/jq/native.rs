//! Native jq filters that convert document formats of services to Markdown and back.

use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Cv, Error, RunPtr, ValXs};
use jaq_json::Val;
use serde_json::Value;

use super::JqData;
use super::value::{of_jq, to_jq};
use crate::convert::{adf, html, notion, storage};

pub(super) fn all() -> impl Iterator<Item = Fun<JqData>> {
    let natives: [(&'static str, RunPtr<JqData>); 7] = [
        ("notion_to_md", |cv| value(cv, |blocks| Value::String(notion::to_markdown(blocks)))),
        ("md_to_notion", |cv| text(cv, "md_to_notion", notion::from_markdown)),
        ("adf_to_md", |cv| value(cv, |document| Value::String(adf::to_markdown(document)))),
        ("md_to_adf", |cv| text(cv, "md_to_adf", adf::from_markdown)),
        ("storage_to_md", |cv| text(cv, "storage_to_md", |xhtml| Value::String(storage::to_markdown(xhtml)))),
        ("md_to_storage", |cv| text(cv, "md_to_storage", |text| Value::String(storage::from_markdown(text)))),
        ("html_to_md", |cv| text(cv, "html_to_md", |text| Value::String(html::to_markdown(text)))),
    ];
    natives.into_iter().map(|(name, pointer)| run::<JqData>((name, v(0), pointer)))
}

type NativeOutputs<'a> = ValXs<'a, Val>;

fn value((_, input): Cv<'_, JqData>, convert: impl Fn(&Value) -> Value) -> NativeOutputs<'_> {
    bome(Ok(to_jq(&convert(&of_jq(&input)))))
}

/// Applies a text conversion. Null counts as an empty text.
fn text<'a>((_, input): Cv<'a, JqData>, name: &str, convert: impl Fn(&str) -> Value) -> NativeOutputs<'a> {
    bome(match of_jq(&input) {
        Value::String(text) => Ok(to_jq(&convert(&text))),
        Value::Null => Ok(to_jq(&convert(""))),
        _ => Err(Error::str(format!("{name} needs a string"))),
    })
}

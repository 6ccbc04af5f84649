//! Parts of long results: a page, the lines with a text, or what a jq program selects.

use std::sync::Arc;

use hikite_core::compact::{CompactText, Shape, TextFormat, parse};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::selector::Selector;
use serde_json::Value;

use super::{Answers, CompactOutput, META};
use crate::audit::Audit;
use crate::command::{Dialect, ResultPart};
use crate::handle::line::ResultLines;
use crate::handle::{ResultOwner, StoredResult, page, result_uri};
use crate::off_worker::off_worker;

impl Answers {
    /// Returns a part of the stored result with this id, if it is the caller's.
    pub(crate) async fn stored(
        &self,
        id: &str,
        part: ResultPart,
        whose: (&ResultOwner, Dialect),
        audit: &mut Audit<'_>,
    ) -> Result<CompactOutput, Error> {
        let stored = self.result_store.find(id, whose.0.caller()).ok_or_else(|| unknown(id))?;
        audit.allowed(String::new());
        self.part_of(stored, &result_uri(id), part, whose).await
    }

    pub(crate) async fn part_of(
        &self,
        stored: Arc<StoredResult>,
        uri: &str,
        part: ResultPart,
        (holder, dialect): (&ResultOwner, Dialect),
    ) -> Result<CompactOutput, Error> {
        if let Some(program) = part.jq {
            let jq = || Selector::Jq(program.as_str().into());
            let is_path = program.trim_start().starts_with('.');
            let selector = if is_path { Selector::parse(&program).unwrap_or_else(|_| jq()) } else { jq() };
            let value = self.select(&selector, stored.value.clone(), holder.caller()).await?;
            let size = self.limits.compact_bytes;
            return Ok(CompactOutput::of(self.shortened(dialect, &value, None, size, holder).await));
        }
        let size = self.limits.compact_bytes;
        off_worker(stored.value.bytes().len(), || match part.search {
            Some(wanted) => Ok(found(&stored, &wanted, size)),
            None => paged(&stored, uri, part.page.unwrap_or(1), size),
        })
        .await
    }
}

fn found(stored: &StoredResult, wanted: &str, size: usize) -> CompactOutput {
    let lines = ResultLines::of(&parse(&stored.value), stored.shape.as_ref());
    let text = page::search(&lines, wanted, size);
    CompactOutput { text, about: Object::default().with("form", lines.form.name()) }
}

fn paged(stored: &StoredResult, uri: &str, number: u32, size: usize) -> Result<CompactOutput, Error> {
    let lines = ResultLines::of(&parse(&stored.value), stored.shape.as_ref());
    let pages = page::pages(&lines, page_bytes(size));
    let text = page::page(&pages, number)?;
    let count = pages.len();
    let about = Object::default()
        .with("form", lines.form.name())
        .with("page", Raw::of(&number))
        .with("pages", Raw::of(&count))
        .with("handle", uri);
    Ok(CompactOutput { text: format!("{text}\n[page {number} of {count}]"), about })
}

/// Returns the page size. A page is shorter than a compact result, so that a truncated result covers the first page.
fn page_bytes(budget: usize) -> usize {
    budget - budget / 8
}

/// Returns `true` if a truncated result contains all of the first page.
pub(super) fn is_on_first_page(value: &Value, shape: Option<&Shape>, short: &CompactText, budget: usize) -> bool {
    let lines = ResultLines::of(value, shape);
    let pages = page::pages(&lines, page_bytes(budget));
    // The header of a table contains the row count, which differs in the truncated result.
    let is_head = |line: &str| lines.form == TextFormat::Toon && line.ends_with(':');
    let is_there = |line: &str| is_head(line) || short.text.contains(line.trim_end_matches(','));
    pages.len() > 1 && lines.form == short.form && pages[0].lines().all(is_there)
}

fn unknown(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no stored result `{}`.", result_uri(id)))
        .hint("Results are stored for a limited time and end with their session. Call the tool again.")
}

/// Builds the tool result of a part.
pub(crate) fn as_result(shown: &CompactOutput, dialect: Dialect) -> Raw {
    let block = Object::default().with("type", "text").with("text", shown.text.as_str()).raw();
    let meta = Object::default().with(META, shown.about.clone());
    let mut result = Object::default().with("content", Raw::array([&block]));
    if dialect == Dialect::Value {
        result.set("structuredContent", Object::default().with("result", shown.text.as_str()));
    }
    result.with("_meta", meta).raw()
}

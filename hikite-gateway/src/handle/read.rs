//! Reads a part of a stored result or of a resource, as a resource or as a tool result.

use std::sync::Arc;

use hikite_core::compact::{CompactText, Shape, TextFormat, parse};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::selector::Selector;
use hikite_core::source::{CallContext, SourceMethod};
use hikite_core::tool_output::ToolOutput;
use serde_json::Value;

use super::line::ResultLines;
use super::uri::{ResultUri, joined};
use super::{ResultOwner, ResultPart, StoredResult, page};
use crate::audit::Audit;
use crate::command::Dialect;
use crate::gateway::Gateway;
use crate::off_worker::off_worker;
use crate::render::{CompactOutput, META, in_dialect};

impl Gateway {
    /// Returns a resource, or a part of a stored result, as a tool result.
    pub(crate) async fn fetch(
        &self,
        uri: String,
        (part, dialect): (ResultPart, Dialect),
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let holder = ResultOwner::of(&mut params, &context);
        if let Some(address) = ResultUri::read(&uri) {
            let address = address?;
            let part = joined(address.part, part)?;
            let shown = self.stored(address.id, part, (&holder, dialect), audit).await?;
            return Ok(as_result(&shown, dialect));
        }
        let part = joined(part, ResultPart::default())?;
        let mut read = Object::default().with("uri", uri.as_str());
        if let Some(meta) = params.remove("_meta") {
            read.set("_meta", meta);
        }
        let result = self.resource(SourceMethod::ReadResource, read, context, audit).await.map_err(hinted)?;
        if part == ResultPart::default() {
            return Ok(in_dialect(contents_as_result(result), dialect));
        }
        let stored = Arc::new(StoredResult { value: ToolOutput::read(&contents_as_result(result)).value, shape: None });
        self.part_of(stored, &uri, part, (&holder, dialect)).await.map(|shown| as_result(&shown, dialect))
    }

    /// Returns a part of a stored result as a resource. A URI that only looks like ours goes to the server that owns
    /// it.
    pub(crate) async fn read_stored_result(
        &self,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let uri = params.text("uri").unwrap_or_default();
        let Some(address) = ResultUri::read(&uri) else {
            return self.resource(SourceMethod::ReadResource, params, context, audit).await;
        };
        let address = address?;
        let part = joined(address.part, ResultPart::default())?;
        let holder = ResultOwner::of(&mut params, &context);
        let shown = self.stored(address.id, part, (&holder, Dialect::Result), audit).await?;
        let contents = Object::default()
            .with("uri", uri.as_str())
            .with("mimeType", "text/plain")
            .with("text", shown.text.as_str())
            .raw();
        let meta = Object::default().with(META, shown.about);
        Ok(Object::default().with("contents", Raw::array([&contents])).with("_meta", meta).raw())
    }

    async fn stored(
        &self,
        id: &str,
        part: ResultPart,
        whose: (&ResultOwner, Dialect),
        audit: &mut Audit<'_>,
    ) -> Result<CompactOutput, Error> {
        let stored = self.result_store.find(id, whose.0.caller()).ok_or_else(|| unknown(id))?;
        audit.allowed(String::new());
        self.part_of(stored, &super::result_uri(id), part, whose).await
    }

    async fn part_of(
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
pub(crate) fn is_on_first_page(value: &Value, shape: Option<&Shape>, short: &CompactText, budget: usize) -> bool {
    let lines = ResultLines::of(value, shape);
    let pages = page::pages(&lines, page_bytes(budget));
    // The header of a table contains the row count, which differs in the truncated result.
    let is_head = |line: &str| lines.form == TextFormat::Toon && line.ends_with(':');
    let is_there = |line: &str| is_head(line) || short.text.contains(line.trim_end_matches(','));
    pages.len() > 1 && lines.form == short.form && pages[0].lines().all(is_there)
}

fn unknown(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no stored result `{}`.", super::result_uri(id)))
        .hint("Results are stored for a limited time and end with their session. Call the tool again.")
}

/// Adds a hint for models that have only tools.
fn hinted(error: Error) -> Error {
    if error.kind != ErrorKind::NotFound || error.relayed.is_some() {
        return error;
    }
    error.hint("`get_module_schema` lists the resources of a module.")
}

fn as_result(shown: &CompactOutput, dialect: Dialect) -> Raw {
    let block = Object::default().with("type", "text").with("text", shown.text.as_str()).raw();
    let meta = Object::default().with(META, shown.about.clone());
    let mut result = Object::default().with("content", Raw::array([&block]));
    if dialect == Dialect::Value {
        result.set("structuredContent", Object::default().with("result", shown.text.as_str()));
    }
    result.with("_meta", meta).raw()
}

/// Converts the contents of a resource to content blocks: text as text, the rest embedded. A result without `contents`
/// is returned unchanged.
fn contents_as_result(result: Raw) -> Raw {
    let Some(contents) = result.object().and_then(|members| members.get("contents")?.items()) else {
        return result;
    };
    let blocks: Vec<Raw> = contents
        .into_iter()
        .map(|content| {
            let block = Object::default();
            match content.object().and_then(|members| members.get("text").cloned()) {
                Some(text) => block.with("type", "text").with("text", text).raw(),
                None => block.with("type", "resource").with("resource", content).raw(),
            }
        })
        .collect();
    Object::default().with("content", Raw::array(&blocks)).raw()
}

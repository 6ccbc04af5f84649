//! Resources and stored results, read as a tool result or as a resource.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, SourceMethod};
use hikite_core::tool_output::ToolOutput;

use crate::answers::{META, as_result, in_dialect};
use crate::audit::Audit;
use crate::command::{Dialect, ResultPart};
use crate::gateway::Gateway;
use crate::handle::{ResultOwner, ResultUri, StoredResult, joined};

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
            let shown = self.answers.stored(address.id, part, (&holder, dialect), audit).await?;
            return Ok(as_result(&shown, dialect));
        }
        let part = joined(part, ResultPart::default())?;
        let mut read = Object::default().with("uri", uri.as_str());
        if let Some(meta) = params.remove("_meta") {
            read.set("_meta", meta);
        }
        let result = self.executor.resource(SourceMethod::ReadResource, read, context, audit).await.map_err(hinted)?;
        if part == ResultPart::default() {
            return Ok(in_dialect(contents_as_result(result), dialect));
        }
        let stored = Arc::new(StoredResult { value: ToolOutput::read(&contents_as_result(result)).value, shape: None });
        self.answers.part_of(stored, &uri, part, (&holder, dialect)).await.map(|shown| as_result(&shown, dialect))
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
            return self.executor.resource(SourceMethod::ReadResource, params, context, audit).await;
        };
        let address = address?;
        let part = joined(address.part, ResultPart::default())?;
        let holder = ResultOwner::of(&mut params, &context);
        let shown = self.answers.stored(address.id, part, (&holder, Dialect::Result), audit).await?;
        let contents = Object::default()
            .with("uri", uri.as_str())
            .with("mimeType", "text/plain")
            .with("text", shown.text.as_str())
            .raw();
        let meta = Object::default().with(META, shown.about);
        Ok(Object::default().with("contents", Raw::array([&contents])).with("_meta", meta).raw())
    }
}

/// Adds a hint for models that have only tools.
fn hinted(error: Error) -> Error {
    if error.kind != ErrorKind::NotFound || error.relayed.is_some() {
        return error;
    }
    error.hint("`get_module_schema` lists the resources of a module.")
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

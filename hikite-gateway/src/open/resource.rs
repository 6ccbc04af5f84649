//! A resource as the result of a tool: texts as texts, everything else embedded as it is.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Method};

use crate::audit::Audit;
use crate::gateway::Gateway;

impl Gateway {
    /// Reads it on the same path as `resources/read`.
    pub(crate) async fn fetch_resource(
        &self,
        uri: &str,
        params: &Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let mut asked = Object::default().with("uri", uri);
        if let Some(meta) = params.get("_meta") {
            asked.set("_meta", meta.clone());
        }
        let result = self.resource(Method::ReadResource, asked, context, audit).await;
        result.map(as_result).map_err(|error| match error.kind {
            Kind::NotFound if error.relayed.is_none() => {
                error.hint("`get_module_schema` names the resources of a module")
            }
            _ => error,
        })
    }
}

/// What is no result yet, such as a question to the client, stays as it is.
fn as_result(read: Raw) -> Raw {
    let Some(mut members) = read.object() else { return read };
    let Some(contents) = members.get("contents").and_then(Raw::items) else { return read };
    let block = |content: &Raw| match content.object().and_then(|content| content.text("text")) {
        Some(text) => Object::default().with("type", "text").with("text", text).raw(),
        None => Object::default().with("type", "resource").with("resource", content.clone()).raw(),
    };
    let blocks: Vec<Raw> = contents.iter().map(block).collect();
    members.remove("contents");
    members.set("content", Raw::array(&blocks));
    members.raw()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_become_texts_and_the_rest_is_embedded() {
        let text = json!({ "uri": "a:1", "mimeType": "text/plain", "text": "設計" });
        let blob = json!({ "uri": "a:2", "mimeType": "image/png", "blob": "AA==" });
        let read = json!({ "contents": [text, blob], "_meta": { "x": 1 } });
        assert_eq!(
            as_result(Raw::of(&read)).value(),
            json!({ "_meta": { "x": 1 }, "content": [
                { "type": "text", "text": "設計" },
                { "type": "resource", "resource": blob },
            ] })
        );
        let asks = Raw::of(&json!({ "resultType": "input_required" }));
        assert_eq!(as_result(asks.clone()), asks);
    }
}

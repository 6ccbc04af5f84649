//! Prompts, completions, and prompts as tool results: every message as text, preceded by its role.

use std::sync::Arc;

use hikite_core::catalog::Module;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use hikite_core::view::View;

use super::{Executor, missing, required};
use crate::audit::Audit;

impl Executor {
    pub(crate) async fn prompt(
        &self,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let name = required(&params, "name")?;
        let (snapshot, (module, own)) =
            self.lookup.look_up_named(&*context.session, &name, |view| prompt_of(view, &name)).await?;
        params.set("name", &*own);
        let invocation = Invocation { method: SourceMethod::GetPrompt, params };
        self.pass_on(&snapshot, &module, format!("prompts/get {name}"), invocation, context, audit).await
    }

    pub(crate) async fn complete(
        &self,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let reference = params.get("ref").and_then(Raw::object).ok_or_else(|| missing("ref"))?;
        let session = &*context.session;
        let (snapshot, module) = match reference.text("type").as_deref() {
            Some("ref/prompt") => {
                let name = required(&reference, "name")?;
                let (snapshot, (module, own)) =
                    self.lookup.look_up_named(session, &name, |view| prompt_of(view, &name)).await?;
                params.set("ref", reference.with("name", &*own));
                (snapshot, module)
            }
            Some("ref/resource") => {
                let uri = required(&reference, "uri")?;
                self.lookup.look_up(session, |view| view.resource(&uri).map(|module| Arc::clone(&module.name))).await?
            }
            _ => return Err(missing("ref.type")),
        };
        let invocation = Invocation { method: SourceMethod::Complete, params };
        self.pass_on(&snapshot, &module, "completion/complete".into(), invocation, context, audit).await
    }

    /// Gets a prompt on the same path as `prompts/get`.
    pub(crate) async fn fetch_prompt(
        &self,
        module: Option<String>,
        name: String,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let which = |other: &Module| module.as_deref().is_none_or(|module| *other.name == *module);
        let find = |view: &View| {
            let found = match &module {
                Some(module) => view.prompt_of(module, &name),
                None => view.prompt(&name),
            };
            found.map(|(module, prompt)| (Arc::clone(&module.name), Arc::clone(&prompt.item.name)))
        };
        let (snapshot, (module, own)) = self.lookup.look_up_among(&*context.session, which, find).await?;
        params.set("name", &*own);
        if let Some(arguments) = params.get("arguments").and_then(Raw::object) {
            params.set("arguments", as_texts(&arguments));
        }
        let invocation = Invocation { method: SourceMethod::GetPrompt, params };
        let what = format!("prompts/get {name}");
        let result = self.pass_on(&snapshot, &module, what, invocation, context, audit).await?;
        Ok(as_result(result))
    }
}

/// Returns the module of a prompt and its own name there.
fn prompt_of(view: &View, name: &str) -> Result<(Arc<str>, Arc<str>), Error> {
    view.prompt(name).map(|(module, prompt)| (Arc::clone(&module.name), Arc::clone(&prompt.item.name)))
}

/// Converts arguments to strings, as MCP requires of prompt arguments; models also send numbers and more.
fn as_texts(arguments: &Object) -> Object {
    arguments.iter().filter(|(_, value)| !value.is_null()).fold(Object::default(), |texts, (name, value)| {
        let text = value.text().unwrap_or_else(|| value.as_str().into_owned());
        texts.with(name, text)
    })
}

/// Converts a prompt result to a tool result. Returns anything else, such as an input request, unchanged.
fn as_result(got: Raw) -> Raw {
    let Some(mut members) = got.object() else { return got };
    let Some(messages) = members.get("messages").and_then(Raw::items) else { return got };
    let text = |text: String| Object::default().with("type", "text").with("text", text).raw();
    let mut blocks: Vec<Raw> = members.text("description").into_iter().map(text).collect();
    for message in messages.iter().filter_map(Raw::object) {
        let role = message.text("role").unwrap_or_default();
        let Some(content) = message.get("content") else { continue };
        match content.object().and_then(|content| content.text("text")) {
            Some(words) => blocks.push(text(format!("{role}: {words}"))),
            None => blocks.extend([text(format!("{role}:")), content.clone()]),
        }
    }
    members.remove("messages");
    members.remove("description");
    members.set("content", Raw::array(&blocks));
    members.raw()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_message_says_whose_it_is() {
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let got = json!({ "description": "Sums up.", "messages": [
            { "role": "user", "content": { "type": "text", "text": "要約して" } },
            { "role": "assistant", "content": image },
        ] });
        assert_eq!(
            as_result(Raw::of(&got)).value(),
            json!({ "content": [
                { "type": "text", "text": "Sums up." },
                { "type": "text", "text": "user: 要約して" },
                { "type": "text", "text": "assistant:" },
                image,
            ] })
        );
    }

    #[test]
    fn arguments_are_texts() {
        let sent = Raw::of(&json!({ "a": "x", "n": 3, "l": [1], "none": null })).object().expect("an object");
        assert_eq!(as_texts(&sent).raw().value(), json!({ "a": "x", "n": "3", "l": "[1]" }));
    }
}

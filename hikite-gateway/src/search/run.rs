//! The two commands of the `search` surface: find tools, and run one that was found.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::CallContext;
use hikite_core::suggest;
use hikite_core::view::View;

use super::ask::{Among, Inquiry};
use super::conversation::conversation;
use crate::audit::Audit;
use crate::command::{CallOptions, Detail, Target};
use crate::gateway::Gateway;
use crate::surface::{executed, found};

impl Gateway {
    pub(crate) async fn discover(
        &self,
        asked: &Inquiry,
        detail: Detail,
        mut params: Object,
        context: &CallContext,
        audit: &mut Audit<'_>,
    ) -> Raw {
        let caller = &context.session.caller;
        self.settle(caller).await;
        let view = self.view_of(caller);
        let mut told = self.ask(caller, &view, asked, Among::Usable).await;
        audit.searched(told.provider, &asked.queries, told.found.len());
        let conversation = conversation(&mut params, context);
        if let Some((conversation, remark)) = conversation.zip(told.remark.take()) {
            let shown: Vec<ToolKey> = told.found.iter().map(|chosen| chosen.key.clone()).collect();
            if !shown.is_empty() {
                self.search.note(conversation, remark, shown);
            }
        }
        found(&view, &told, detail)
    }

    pub(crate) async fn execute_found(
        &self,
        name: String,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let conversation = conversation(&mut params, &context);
        let caller = context.session.caller.clone();
        let target = Target::Named(name.clone());
        let outcome = self.call(target, params, CallOptions::default(), context, audit).await;
        let result = executed(outcome.map_err(|error| near(&self.view_of(&caller), &name, error))?);
        if let Some(conversation) = conversation.filter(|_| is_well(&result))
            && let Ok(tool) = self.view_of(&caller).tool(&name)
        {
            self.went_well(&conversation, &tool.key);
        }
        Ok(result)
    }
}

/// Keys that the caller may have meant.
fn near(view: &View, name: &str, error: Error) -> Error {
    if error.kind != Kind::ToolNotFound || error.hint.is_some() {
        return error;
    }
    let keys: Vec<String> = view.enabled_tools().map(|tool| tool.key.to_string()).collect();
    match suggest::did_you_mean(name, keys.iter().map(String::as_str)) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether the tool is done and does not say that it failed.
fn is_well(result: &Raw) -> bool {
    let members = result.object().unwrap_or_default();
    let failed = members.get("isError").is_some_and(|flag| flag.as_str() == "true");
    members.get("structuredContent").is_some() && !failed
}

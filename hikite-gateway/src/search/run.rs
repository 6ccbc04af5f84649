//! The two commands of the `search` surface: finding tools, and executing one.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::CallContext;
use hikite_core::suggest;
use hikite_core::view::View;

use super::ask::{Among, Inquiry};
use crate::audit::Audit;
use crate::command::{CallOptions, Detail, Dialect, Target};
use crate::conversation::conversation;
use crate::gateway::Gateway;
use crate::handle::Holder;
use crate::meter::says_error;
use crate::present::{Wanted, in_words};
use crate::surface::found;
use crate::trace::Step;

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
        self.settle_for_list(caller).await;
        let view = self.view_of(&*context.session);
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

    pub(crate) async fn execute_wanted(
        &self,
        target: Target,
        mut params: Object,
        (options, wanted, dialect): (CallOptions, Wanted, Dialect),
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let holder = Holder::of(&mut params, &context);
        let asked = target.clone();
        let arguments = params.get("arguments").cloned();
        let origin = context.origin.clone();
        // Boxed to bound the size of the largest future.
        let result = match Box::pin(self.call(target, params, options, context, audit)).await {
            Ok(result) => result,
            Err(error) => return Err(near(&self.view_of(holder.viewer()), &asked, error)),
        };
        if let Some(conversation) = holder.conversation.as_ref().filter(|_| is_well(&result))
            && let Some(key) = audit.tool()
        {
            self.went_well(conversation, &key);
        }
        let shape =
            self.shape_of(audit.tool().as_ref(), arguments.as_ref(), &result, &wanted, holder.caller()).await;
        if shape.is_none() && self.relays(&wanted, holder.caller()) {
            return Ok(in_words(result, dialect));
        }
        // Boxed so that relayed results do not pay for it.
        let before = result.bytes().len();
        let step = Step::begin(self.meter.tracer(), "compact answer", &origin);
        let presented = Box::pin(self.present(result, dialect, (&wanted, shape.as_ref()), &holder)).await?;
        drop(step);
        let after = presented.bytes().len();
        audit.presented(before, after);
        self.saving.answer(before, after);
        Ok(presented)
    }
}

/// Adds similar tool keys to a not-found error.
fn near(view: &View, asked: &Target, error: Error) -> Error {
    if error.kind != Kind::ToolNotFound || error.hint.is_some() {
        return error;
    }
    let name = match asked {
        Target::Named(name) | Target::InCategory { name, .. } => name.clone(),
        Target::Keyed(key) => key.to_string(),
    };
    let keys = view.enabled_tools().map(|tool| tool.key.to_string());
    // A tool that the account does not allow is not suggested.
    let keys: Vec<String> = keys.filter(|key| *key != name).collect();
    match suggest::did_you_mean(&name, keys.iter().map(String::as_str)) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Returns `true` if a result is final and not an error.
fn is_well(result: &Raw) -> bool {
    let members = result.object().unwrap_or_default();
    let done = ["content", "structuredContent"].iter().any(|member| members.get(member).is_some());
    done && !says_error(result)
}

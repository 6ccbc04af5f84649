//! A call whose result is rendered in the requested format.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use hikite_core::suggestion;
use hikite_core::view::View;

use crate::answers::in_dialect;
use crate::audit::Audit;
use crate::command::{CallOptions, Dialect, OutputOptions, ToolTarget};
use crate::gateway::Gateway;
use crate::handle::ResultOwner;
use crate::meter::is_error_result;
use crate::trace::TraceStep;

impl Gateway {
    pub(super) async fn execute_with_output(
        &self,
        target: ToolTarget,
        mut params: Object,
        (options, wanted, dialect): (CallOptions, OutputOptions, Dialect),
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let holder = ResultOwner::of(&mut params, &context);
        let asked = target.clone();
        let arguments = params.get("arguments").cloned();
        let origin = context.origin.clone();
        // Boxed to bound the size of the largest future.
        let result = match Box::pin(self.executor.call(target, params, options, context, audit)).await {
            Ok(result) => result,
            Err(error) => return Err(with_suggestion(&self.catalogs.view_of(holder.viewer()), &asked, error)),
        };
        if let Some(conversation) = holder.conversation.as_ref().filter(|_| is_success(&result))
            && let Some(key) = audit.tool()
        {
            self.search.record_success(conversation, &key);
        }
        let shape =
            self.answers.shape_of(audit.tool().as_ref(), arguments.as_ref(), &result, &wanted, holder.caller()).await;
        if shape.is_none() && self.answers.relays(&wanted, holder.caller()) {
            return Ok(in_dialect(result, dialect));
        }
        // Boxed so that relayed results do not pay for it.
        let before = result.bytes().len();
        let step = TraceStep::begin(self.meter.tracer(), "compact answer", &origin);
        let presented = Box::pin(self.answers.present(result, dialect, (&wanted, shape.as_ref()), &holder)).await?;
        drop(step);
        let after = presented.bytes().len();
        audit.presented(before, after);
        self.token_savings.answer(before, after);
        Ok(presented)
    }
}

/// Adds similar tool keys to a not-found error.
fn with_suggestion(view: &View, asked: &ToolTarget, error: Error) -> Error {
    if error.kind != ErrorKind::ToolNotFound || error.hint.is_some() {
        return error;
    }
    let name = match asked {
        ToolTarget::Named(name) | ToolTarget::InCategory { name, .. } => name.clone(),
        ToolTarget::Keyed(key) => key.to_string(),
    };
    let keys = view.enabled_tools().map(|tool| tool.key.to_string());
    // A tool that the account does not allow is not suggested.
    let keys: Vec<String> = keys.filter(|key| *key != name).collect();
    match suggestion::did_you_mean(&name, keys.iter().map(String::as_str)) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Returns `true` if a result is final and not an error.
fn is_success(result: &Raw) -> bool {
    let members = result.object().unwrap_or_default();
    let done = ["content", "structuredContent"].iter().any(|member| members.get(member).is_some());
    done && !is_error_result(result)
}

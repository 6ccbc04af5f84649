//! Answers that were too long to give at once, kept for who asked: to be read on in pages, through jq or by a text that is
//! looked for. Bounded in number, size and age, and gone with the conversation.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::audit::Audit;
use crate::conversation::{Conversation, conversation};
use crate::gateway::Gateway;

/// The beginning of the address of an answer that was kept.
pub(crate) const SCHEME: &str = "result://";

/// Which part of a resource is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub page: Option<u32>,
    pub jq: Option<String>,
    pub search: Option<String>,
}

/// Whose an answer is that is kept, and with whose conversation it goes.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) caller: hikite_core::caller::Caller,
    pub(crate) conversation: Option<Conversation>,
}

impl Holder {
    /// Reads, and takes away, what the params say of their conversation.
    pub(crate) fn of(params: &mut Object, context: &CallContext) -> Self {
        let conversation = conversation(params, context);
        Self { caller: context.session.caller.clone(), conversation }
    }
}

impl Gateway {
    /// A resource, or a part of a kept answer, as the result of a tool.
    pub(crate) async fn fetch(
        &self,
        uri: String,
        part: Part,
        params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        if !uri.starts_with(SCHEME) {
            return self.fetch_resource(&uri, &params, context, audit).await;
        }
        let _ = part;
        std::future::ready(Err(Error::new(Kind::Internal, "no handles yet"))).await
    }
}

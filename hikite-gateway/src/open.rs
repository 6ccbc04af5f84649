//! Modules opened on demand: what they offer, and what a conversation has been shown of it already.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::audit::Audit;
use crate::command::Opening;
use crate::gateway::Gateway;

impl Gateway {
    pub(crate) async fn open(&self, opening: Opening, context: CallContext) -> Result<Raw, Error> {
        let _ = (opening, context, self);
        std::future::ready(Err(Error::new(Kind::Internal, "no modules yet"))).await
    }

    /// A prompt as the result of a tool.
    pub(crate) async fn recite(
        &self,
        module: Option<String>,
        name: String,
        params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let _ = (module, name, params, context, audit, self);
        std::future::ready(Err(Error::new(Kind::Internal, "no prompts yet"))).await
    }
}

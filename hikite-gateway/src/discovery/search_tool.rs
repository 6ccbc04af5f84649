//! The command of the `search` surface that finds tools, and search among tools that come with the query.

use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::search::provider::{AvailableTool, RankedTool};
use hikite_core::source::{CallContext, CallOrigin};

use super::Discovery;
use crate::audit::Audit;
use crate::command::{Detail, ToolQuery};
use crate::conversation::conversation;
use crate::search::CandidateSet;
use crate::surface::found;

impl Discovery {
    pub(crate) async fn search(
        &self,
        asked: &ToolQuery,
        detail: Detail,
        mut params: Object,
        context: &CallContext,
        audit: &mut Audit<'_>,
    ) -> Raw {
        let caller = &context.session.caller;
        self.lookup.wait_for_client_listing(caller).await;
        let view = self.catalogs.view_of(&*context.session);
        let mut told = self.search.ask(caller, &view, asked, CandidateSet::Usable).await;
        audit.searched(told.provider, &asked.queries, told.found.len());
        let conversation = conversation(&mut params, context);
        if let Some((conversation, query_record)) = conversation.zip(told.query_record.take()) {
            let shown: Vec<ToolKey> = told.found.iter().map(|chosen| chosen.key.clone()).collect();
            if !shown.is_empty() {
                self.search.note(conversation, query_record, shown);
            }
        }
        found(&view, &told, detail)
    }

    /// Returns the best of the given tools, and the strategy that was used.
    pub async fn search_candidates(
        &self,
        who: (&Caller, &CallOrigin),
        queries: Vec<String>,
        context: Option<String>,
        tools: Vec<AvailableTool>,
        limit: usize,
    ) -> Result<(Vec<RankedTool>, &'static str), Error> {
        let searching = self.auditor.open_search(who).await?;
        let asked = queries.clone();
        let (chosen, provider) = self.search.rank_candidates(queries, context, tools, limit).await?;
        searching.found(provider, &asked, chosen.len());
        Ok((chosen, provider))
    }
}

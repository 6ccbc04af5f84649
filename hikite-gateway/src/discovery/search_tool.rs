//! The command of the `search` surface that finds tools, and search among tools that come with the query.

use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::search::provider::AvailableTool;
use hikite_core::source::{CallContext, CallOrigin};
use hikite_core::view::View;

use super::Discovery;
use crate::accounts::how_to_connect;
use crate::audit::Audit;
use crate::command::{Detail, ToolQuery};
use crate::conversation::conversation;
use crate::search::{CandidateRanking, CandidateSet, QueryOutcome};
use crate::surface::found;

/// Maximum number of hits where none fits.
const WEAK_MAX: usize = 3;
/// Instructions for a caller who cannot connect an account.
const ASK_OWNER: &str = "Ask the owner of this hikite to connect it.";

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
        if told.fitting == 0 {
            told.found.truncate(WEAK_MAX);
        }
        audit.searched(told.provider, &asked.queries, told.found.len());
        let conversation = conversation(&mut params, context);
        if let Some((conversation, query_record)) = conversation.zip(told.query_record.take()) {
            let shown: Vec<ToolKey> = told.found.iter().map(|chosen| chosen.key.clone()).collect();
            if !shown.is_empty() {
                self.search.note(conversation, query_record, shown);
            }
        }
        found(&view, &told, &self.needs(caller, &view, &told).await, detail)
    }

    /// Returns the tools of services that the caller has to connect first, with instructions.
    pub(super) async fn needs(&self, caller: &Caller, view: &View, told: &QueryOutcome) -> Vec<Raw> {
        let mut needs = Vec::with_capacity(told.needs.len());
        for key in &told.needs {
            if let Some(module) = view.module(&key.module).filter(|_| view.usable(key).is_some()) {
                let how = match self.catalogs.accounts.as_ref().zip(module.source.provider()) {
                    Some((accounts, provider)) => how_to_connect(accounts, caller, provider).await,
                    None => module.source.login_hint(),
                };
                let how = how.unwrap_or_else(|| ASK_OWNER.to_owned());
                let need =
                    Object::default().with("module", &*key.module).with("tool", key.to_string()).with("how", how);
                needs.push(need.raw());
            }
        }
        needs
    }

    /// Returns the best of the given tools.
    pub async fn search_candidates(
        &self,
        who: (&Caller, &CallOrigin),
        queries: Vec<String>,
        context: Option<String>,
        tools: Vec<AvailableTool>,
        limit: usize,
    ) -> Result<CandidateRanking, Error> {
        let searching = self.auditor.open_search(who).await?;
        let asked = queries.clone();
        let ranking = self.search.rank_candidates(queries, context, tools, limit).await?;
        searching.found(ranking.provider, &asked, ranking.tools.len());
        Ok(ranking)
    }
}

//! The audit for admins: its records page by page, and whether they are as they were written.

use std::sync::Arc;

use axum::extract::State;
use hikite_core::json::{Object, Raw};
use hikite_gateway::{AuditFilter, AuditRow, Verified};
use http::Uri;

use super::query::{self, Query};
use super::{Answer, ok};
use crate::app::App;

pub(crate) const LIMIT: u32 = 100;
pub(crate) const LIMIT_MAX: u32 = 1000;
/// What records can be asked for by, beside the time.
pub(crate) const WORDS: [&str; 8] =
    ["kind", "decision", "outcome", "requestId", "subject", "project", "module", "tool"];

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    let known: Vec<&str> = WORDS.into_iter().chain(["since", "until", "before", "limit"]).collect();
    let mut query = Query::read(&uri, &known);
    let [kind, decision, outcome, request_id, subject, project, module, tool] =
        WORDS.map(|word| query.one(word));
    let (since, until) = (query.moment("since"), query.moment("until"));
    let before = query.number("before");
    let limit = query.whole("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT) as usize;
    query.finish()?;
    let filter =
        AuditFilter { kind, decision, outcome, request_id, subject, project, module, tool, since, until };
    let rows = app.gateway.audit_page(&filter, before, limit).await?;
    let records: Vec<Raw> = rows.iter().filter_map(record).collect();
    let mut body = Object::default().with("records", Raw::array(&records));
    // A page that is not full is the last.
    if let Some(last) = rows.last().filter(|_| rows.len() == limit) {
        body.set("next", Raw::of(&last.seq));
    }
    Ok(ok(&body.raw()))
}

pub(crate) async fn verify(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    query::none(&uri)?;
    Ok(ok(&verdict(&app.gateway.verify_audit().await?)))
}

/// What somebody wrote into the store by hand may be no JSON; `verify` names it.
fn record(row: &AuditRow) -> Option<Raw> {
    Raw::parse(row.line()).ok()
}

fn verdict(verified: &Verified) -> Raw {
    let mut body = Object::default()
        .with("intact", Raw::of(&verified.broken.is_none()))
        .with("records", Raw::of(&verified.records()))
        .with("first", Raw::of(&verified.first.seq))
        .with("last", Raw::of(&verified.last.seq))
        .with("hash", verified.last.hash.as_str());
    if let Some(broken) = &verified.broken {
        let broken =
            Object::default().with("seq", Raw::of(&broken.seq)).with("problem", broken.problem.as_str());
        body.set("broken", broken);
    }
    body.raw()
}

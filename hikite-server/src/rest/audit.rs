//! The audit for admins: its records page by page, and whether they are as they were written.

pub(crate) mod export;

use std::sync::Arc;

use axum::extract::State;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_gateway::{AuditFilter, AuditRow, AuditWalk, Verified};
use http::Uri;

use super::query::{self, Query};
use super::{Answer, Named, key, ok};
use crate::app::App;

pub(crate) const LIMIT: u32 = 100;
pub(crate) const LIMIT_MAX: u32 = 1000;
/// What records can be asked for by, beside the time.
pub(crate) const WORDS: [&str; 8] =
    ["kind", "decision", "outcome", "requestId", "subject", "project", "module", "tool"];

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    let mut query = Query::read(&uri, &known(&["before", "after", "limit"]));
    let filter = filter(&mut query);
    let (before, after) = (query.number("before"), query.number("after"));
    let limit = query.whole("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT) as usize;
    if before.is_some() && after.is_some() {
        query.fault("after", "`after` and `before` do not go together".into());
    }
    query.finish()?;
    let walk = after.map_or(AuditWalk::Back(before), AuditWalk::On);
    let rows = app.gateway.audit_page(&filter, walk, limit).await?;
    let records: Vec<Raw> = rows.iter().filter_map(record).collect();
    let mut body = Object::default().with("records", Raw::array(&records));
    // A page that is not full is the last.
    if let Some(last) = rows.last().filter(|_| rows.len() == limit) {
        body.set("next", Raw::of(&last.seq));
    }
    Ok(ok(&body.raw()))
}

/// One record by its number.
pub(crate) async fn get(State(app): State<Arc<App>>, path: Named, uri: Uri) -> Answer {
    query::none(&uri)?;
    let seq = key(path)?.parse::<u64>().ok().filter(|seq| (1..=i64::MAX as u64).contains(seq));
    let missing = || Error::new(Kind::NotFound, "there is no such record");
    let seq = seq.ok_or_else(missing)?;
    let walk = AuditWalk::On(seq - 1);
    let rows = app.gateway.audit_page(&AuditFilter::default(), walk, 1).await?;
    let found = rows.iter().find(|row| row.seq == seq).and_then(record);
    Ok(ok(&found.ok_or_else(missing)?))
}

/// What is asked for beside the words and the time.
fn known(more: &[&'static str]) -> Vec<&'static str> {
    WORDS.into_iter().chain(["since", "until"]).chain(more.iter().copied()).collect()
}

fn filter(query: &mut Query) -> AuditFilter {
    let [kind, decision, outcome, request_id, subject, project, module, tool] =
        WORDS.map(|word| query.one(word));
    let (since, until) = (query.moment("since"), query.moment("until"));
    AuditFilter { kind, decision, outcome, request_id, subject, project, module, tool, since, until }
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

//! The audit log for admins: paging, lookup and verification.

pub(crate) mod export;

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hikite_api::audit::{FILTERS, LIMIT, LIMIT_MAX, TEXT_CHARS};
use hikite_api::{AuditBreak, AuditTrim, AuditVerdict};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_gateway::{AuditCursor, AuditFilter, AuditRow, AuditVerification, TrimEvidence};
use http::{StatusCode, Uri};

use super::query::{self, QueryParams};
use super::{NamePath, RestResult, key, ok};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    let mut query = QueryParams::read(&uri, &parameters(&["before", "after", "limit"]));
    let filter = filter(&mut query);
    let (before, after) = (query.number("before"), query.number("after"));
    let limit = query.whole("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT) as usize;
    if before.is_some() && after.is_some() {
        query.fault("after", "`after` and `before` cannot be combined.".into());
    }
    query.finish()?;
    let walk = after.map_or(AuditCursor::Back(before), AuditCursor::On);
    let page = app.gateway.auditor().page(&filter, walk, limit).await?;
    let records: Vec<Raw> = page.rows.iter().filter_map(record).collect();
    let mut body = Object::default().with("records", Raw::array(&records));
    if let Some(next) = page.next {
        body.set("next", Raw::of(&next));
    }
    Ok(ok(&body.raw()))
}

/// Returns one record by number.
pub(crate) async fn get(State(app): State<Arc<App>>, path: NamePath, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let seq = key(path)?.parse::<u64>().ok().filter(|seq| (1..=i64::MAX as u64).contains(seq));
    let missing = || Error::new(ErrorKind::NotFound, "There is no such record.");
    let seq = seq.ok_or_else(missing)?;
    let walk = AuditCursor::On(seq - 1);
    let page = app.gateway.auditor().page(&AuditFilter::default(), walk, 1).await?;
    let found = page.rows.iter().find(|row| row.seq == seq).and_then(record);
    Ok(ok(&found.ok_or_else(missing)?))
}

/// Returns all known parameters: the filters, the time range, and `more`.
fn parameters(more: &[&'static str]) -> Vec<&'static str> {
    FILTERS.into_iter().chain(["since", "until"]).chain(more.iter().copied()).collect()
}

fn filter(query: &mut QueryParams) -> AuditFilter {
    let [kind, decision, outcome, request_id, subject, project, module, tool, actor, text] =
        FILTERS.map(|word| query.one(word));
    let (since, until) = (query.moment("since"), query.moment("until"));
    if text.as_ref().is_some_and(|text| text.chars().count() > TEXT_CHARS) {
        query.fault("text", format!("`text` may have at most {TEXT_CHARS} characters."));
    }
    let text = text.filter(|text| !text.is_empty());
    AuditFilter { kind, decision, outcome, request_id, subject, actor, project, module, tool, since, until, text }
}

pub(crate) async fn verify(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&verdict(&app.gateway.auditor().verify().await?)))
}

/// Confirms that the machine's clock is right, so that trimming old records resumes.
pub(crate) async fn resume_trim(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let work = app.gateway.auditor().resume_trim();
    app.gateway.auditor().record_admin((&caller, &origin), "audit.resume-trim", "", work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Parses a record. A manipulated row may not be JSON; `verify` reports it.
fn record(row: &AuditRow) -> Option<Raw> {
    Raw::parse(row.line()).ok()
}

fn verdict(verified: &AuditVerification) -> AuditVerdict {
    AuditVerdict {
        intact: verified.broken.is_none(),
        records: verified.records(),
        first: verified.first.seq,
        last: verified.last.seq,
        hash: verified.last.hash.clone(),
        trimmed: verified.trim.as_ref().map(|trim| trimmed(verified, trim)),
        broken: verified.broken.as_ref().map(|broken| AuditBreak { seq: broken.seq, problem: broken.problem.clone() }),
    }
}

/// Describes what removed the records before the first one.
fn trimmed(verified: &AuditVerification, trim: &TrimEvidence) -> AuditTrim {
    let record = match trim {
        TrimEvidence::Record { seq, .. } => Some(*seq),
        TrimEvidence::Before => None,
    };
    AuditTrim { to: verified.first.seq, record }
}

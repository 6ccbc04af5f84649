//! The audit log: live, filtered, single records, and verification of the chain.

use askama::Template;
use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use hikite_api::{AuditBreak, AuditStatus, AuditVerdict, Status};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::ApiRequest;
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AuditRecordInfo {
    seq: u64,
    at: u64,
    kind: String,
    decision: String,
    outcome: String,
    subject: String,
    user: Option<String>,
    client: Option<String>,
    project: Option<String>,
    module: Option<String>,
    tool: Option<String>,
    method: Option<String>,
    what: Option<String>,
    ms: Option<f64>,
    bytes_out: Option<u64>,
}

impl AuditRecordInfo {
    fn when(&self) -> String {
        number::moment(self.at)
    }

    fn thing(&self) -> String {
        let key = self.module.as_deref().zip(self.tool.as_deref()).map(|(module, tool)| format!("{module}:{tool}"));
        let one = |text: &Option<String>| text.clone();
        key.or_else(|| one(&self.what)).or_else(|| one(&self.module)).or_else(|| one(&self.method)).unwrap_or_default()
    }

    fn took(&self) -> String {
        self.ms.map(|ms| format!("{ms:.1} ms")).unwrap_or_default()
    }

    fn sent(&self) -> String {
        self.bytes_out.map(|bytes| number::bytes(usize::try_from(bytes).unwrap_or(usize::MAX))).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AuditRecordPage {
    records: Vec<AuditRecordInfo>,
    next: Option<u64>,
}

/// Query parameters of the filter.
#[rustfmt::skip]
const FILTERS: [&str; 12] = [
    "kind", "decision", "outcome", "requestId", "subject", "actor", "project", "module", "tool", "since", "until", "text",
];
/// Maximum API pages read to find a non-empty one.
const EMPTY_PAGES_MAX: usize = 20;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditListPage<'a> {
    context: &'a PageContext,
    records: Vec<AuditRecordInfo>,
    /// URL of the next page.
    older: Option<String>,
    /// The filter as a query, for exports.
    query: String,
    verdict: Option<AuditVerdict>,
    /// Set if nothing is removed by age because the machine's clock jumped.
    is_paused: bool,
    audit: AuditStatus,
}

fn broken_text(broken: &AuditBreak) -> String {
    serde_json::to_string(broken).unwrap_or_default()
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    audit_page(context, None).await
}

pub(crate) async fn verify(context: PageContext) -> PageResult {
    let verdict = context.get("/v1/audit/verify").await.or_error_page(&context)?;
    audit_page(context, Some(verdict)).await
}

async fn audit_page(context: PageContext, verdict: Option<AuditVerdict>) -> PageResult {
    let query = filters(&context);
    let mut before = context.parameter("before").map(crate::api::part);
    let mut found = AuditRecordPage::default();
    for _ in 0..EMPTY_PAGES_MAX {
        let from = before.map(|before| format!("&before={before}")).unwrap_or_default();
        let path = format!("/v1/audit?limit=50&{query}{from}").replace("&&", "&");
        found = context.get(path.trim_end_matches('&')).await.or_error_page(&context)?;
        before = found.next.map(|next| next.to_string());
        if !found.records.is_empty() || before.is_none() {
            break;
        }
    }
    let AuditRecordPage { records, next } = found;
    let older = next.map(|next| format!("/ui/audit?{query}&before={next}"));
    let status: Option<Status> = context.get("/v1/status").await.ok();
    let unknown = Status { audit: AuditStatus { enabled: true, ..AuditStatus::default() }, ..Status::default() };
    let status = status.unwrap_or(unknown);
    let is_paused = status.attention.iter().any(|one| one.kind == "audit" && one.name == "clock");
    page(&AuditListPage { context: &context, records, older, query, verdict, audit: status.audit, is_paused })
}

/// Confirms that the machine's clock is right.
pub(crate) async fn resume(SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.post("/v1/audit/resume-trim", &serde_json::json!({})).await.or_error_page(&context)?;
    redirect("/ui/audit")
}

fn filters(context: &PageContext) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in FILTERS {
        if let Some(value) = context.parameter(name) {
            query.append_pair(name, value);
        }
    }
    query.finish()
}

#[derive(Template)]
#[template(path = "record.html")]
struct AuditRecordDetail<'a> {
    context: &'a PageContext,
    id: String,
    facts: Vec<(String, String)>,
}

pub(crate) async fn show(context: PageContext, Path(id): Path<String>) -> PageResult {
    let record: Map<String, Value> =
        context.get(&format!("/v1/audit/{}", crate::api::part(&id))).await.or_error_page(&context)?;
    let told = |(name, value): (&String, &Value)| {
        let text = match (name.as_str(), value) {
            ("at", Value::Number(at)) => number::moment(at.as_u64().unwrap_or(0)),
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        (name.clone(), text)
    };
    let facts = record.iter().map(told).collect();
    page(&AuditRecordDetail { context: &context, id, facts })
}

/// Streams the export of the API to the browser as a download.
pub(crate) async fn export(context: PageContext) -> PageResult {
    let format = if context.parameter_or_empty("format") == "csv" { "csv" } else { "jsonl" };
    let path = format!("/v1/audit/export?format={format}&{}", filters(&context));
    let parameter = ApiRequest { accept: "*/*", ..ApiRequest::get(path.trim_end_matches('&')) };
    let answer = context.api.ask(&context.visitor, parameter).await;
    let mut response = Response::new(Body::new(Body::empty()));
    *response.status_mut() = answer.status();
    for name in [CONTENT_TYPE, CONTENT_DISPOSITION] {
        if let Some(value) = answer.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    *response.body_mut() = answer.into_body();
    Ok(response)
}

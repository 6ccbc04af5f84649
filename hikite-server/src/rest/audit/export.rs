//! Export of the audit log as JSON lines with hashes, which can be verified, or as CSV. Streamed, oldest first.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use hikite_core::audit::table;
use hikite_core::error::Error;
use hikite_gateway::{AuditCursor, AuditFilter, AuditPage, AuditRow};
use http::Uri;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};

use super::super::RestError;
use super::super::query::QueryParams;
use super::{filter, parameters};
use crate::app::App;

/// Records per read.
const PAGE_RECORDS: usize = 500;
pub(crate) const JSONL: &str = "application/x-ndjson";
pub(crate) const CSV: &str = "text/csv; charset=utf-8";

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Jsonl,
    Csv,
}

/// The position of an export; `after` is `None` at the end.
struct ExportCursor {
    app: Arc<App>,
    filter: AuditFilter,
    format: ExportFormat,
    after: Option<u64>,
}

pub(crate) async fn export(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, RestError> {
    let mut query = QueryParams::read(&uri, &parameters(&["format"]));
    let filter = filter(&mut query);
    let format = match query.one("format").as_deref() {
        None | Some("jsonl") => ExportFormat::Jsonl,
        Some("csv") => ExportFormat::Csv,
        Some(_) => {
            query.fault("format", "`format` must be `jsonl` or `csv`.".into());
            ExportFormat::Jsonl
        }
    };
    query.finish()?;
    let walk = ExportCursor { app, filter, format, after: Some(0) };
    // A failing first read is an error response, not a truncated file.
    let first = walk.page(0).await?;
    let head = if format == ExportFormat::Csv { table::head() + "\n" } else { String::new() };
    let rest = unfold((walk, Some((head, first))), |(mut walk, first_page)| async move {
        let (head, page) = match first_page {
            Some(first_page) => first_page,
            None => match walk.page(walk.after?).await {
                Ok(page) => (String::new(), page),
                Err(error) => {
                    walk.after = None;
                    return Some((Err(error), (walk, None)));
                }
            },
        };
        walk.after = page.next;
        let text = page.rows.iter().fold(head, |text, row| text + &walk.line(row) + "\n");
        Some((Ok(Bytes::from(text)), (walk, None)))
    });
    let (kind, name) = if format == ExportFormat::Csv { (CSV, "audit.csv") } else { (JSONL, "audit.jsonl") };
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(rest)).into_response())
}

impl ExportCursor {
    async fn page(&self, after: u64) -> Result<AuditPage, Error> {
        self.app.gateway.auditor().page(&self.filter, AuditCursor::On(after), PAGE_RECORDS).await
    }

    fn line(&self, row: &AuditRow) -> String {
        match self.format {
            ExportFormat::Jsonl => row.line(),
            ExportFormat::Csv => table::line(&row.record, &row.hash),
        }
    }
}

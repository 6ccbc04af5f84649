//! Export of the audit log as JSON lines with hashes, which can be verified, or as CSV. Streamed, oldest first.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use hikite_core::audit::table;
use hikite_core::error::Error;
use hikite_gateway::{AuditFilter, AuditPage, AuditRow, AuditWalk};
use http::Uri;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};

use super::super::Failed;
use super::super::query::Query;
use super::{filter, known};
use crate::app::App;

/// Records per read.
const AT_ONCE: usize = 500;
pub(crate) const JSONL: &str = "application/x-ndjson";
pub(crate) const CSV: &str = "text/csv; charset=utf-8";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Jsonl,
    Csv,
}

/// The position of an export; `after` is `None` at the end.
struct Walk {
    app: Arc<App>,
    filter: AuditFilter,
    format: Format,
    after: Option<u64>,
}

pub(crate) async fn export(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Failed> {
    let mut query = Query::read(&uri, &known(&["format"]));
    let filter = filter(&mut query);
    let format = match query.one("format").as_deref() {
        None | Some("jsonl") => Format::Jsonl,
        Some("csv") => Format::Csv,
        Some(_) => {
            query.fault("format", "`format` must be `jsonl` or `csv`".into());
            Format::Jsonl
        }
    };
    query.finish()?;
    let walk = Walk { app, filter, format, after: Some(0) };
    // A failing first read is an error response, not a truncated file.
    let first = walk.page(0).await?;
    let head = if format == Format::Csv { table::head() + "\n" } else { String::new() };
    let rest = unfold((walk, Some((head, first))), |(mut walk, given)| async move {
        let (head, page) = match given {
            Some(given) => given,
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
    let (kind, name) = if format == Format::Csv { (CSV, "audit.csv") } else { (JSONL, "audit.jsonl") };
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(rest)).into_response())
}

impl Walk {
    async fn page(&self, after: u64) -> Result<AuditPage, Error> {
        self.app.gateway.audit_page(&self.filter, AuditWalk::On(after), AT_ONCE).await
    }

    fn line(&self, row: &AuditRow) -> String {
        match self.format {
            Format::Jsonl => row.line(),
            Format::Csv => table::line(&row.record, &row.hash),
        }
    }
}

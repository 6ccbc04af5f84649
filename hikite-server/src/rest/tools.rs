//! Reading tools: a page, a single tool, or a search.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use hikite_api::tool::{LIMIT, LIMIT_MAX, PAGE_MAX, QUERY_CHARS, SEARCH_LIMIT};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_gateway::{ToolFilter, ToolListPage};
use http::{HeaderMap, Uri};

use super::form::RequestForm;
use super::query::{self, QueryParams};
use super::text::tool_error;
use super::{NamePath, RestResult, body, key, ok};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    let mut query = QueryParams::read(&uri, &["category", "tag", "module", "enabled", "page", "limit"]);
    let filter = ToolFilter {
        module: query.one("module"),
        category: query.one("category"),
        tags: query.all("tag"),
        enabled: query.flag("enabled"),
    };
    let page = query.whole("page", 1..=PAGE_MAX).unwrap_or(1);
    let limit = query.whole("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT);
    query.finish()?;
    let start = (page as usize - 1) * limit as usize;
    let found = app.gateway.discovery().tools_page(&caller, &filter, start, limit as usize).await?;
    Ok(ok(&listed(&found, page, limit)))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let tool = app.gateway.discovery().tool(&caller, &name).await.map_err(|error| tool_error(&name, error))?;
    Ok(ok(&tool))
}

pub(crate) async fn search(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let mut form = RequestForm::new(body::read(&app, &headers, body).await?, &["query", "filters", "limit"]);
    let asked = form.raw("query").filter(|query| !query.is_null());
    if asked.is_none_or(|query| query.text().is_some_and(|text| text.trim().is_empty())) {
        return Err(Error::new(ErrorKind::Validation, "Query is required").into());
    }
    let query = form.text("query", QUERY_CHARS).unwrap_or_default();
    let filter = filter(&mut form);
    let limit = form.whole("limit", 1..=LIMIT_MAX).unwrap_or(SEARCH_LIMIT);
    form.finish()?;
    let found = app.gateway.discovery().find_tools((&caller, &origin), &query, &filter, limit as usize).await?;
    let mut body = Object::default()
        .with("query", query.as_str())
        .with("results", Raw::array(&found.items))
        .with("total", Raw::of(&found.total));
    if !found.needs.is_empty() {
        body.set("needs", Raw::array(&found.needs));
    }
    if let Some(note) = found.note {
        body.set("note", note);
    }
    Ok(ok(&body.with("_meta", found.meta).raw()))
}

fn filter(form: &mut RequestForm) -> ToolFilter {
    let Some(mut filters) = form.inner("filters", &["category", "tags", "module"]) else {
        return ToolFilter::default();
    };
    let filter = ToolFilter {
        module: filters.text("module", usize::MAX),
        category: filters.text("category", usize::MAX),
        tags: filters.texts("tags").unwrap_or_default(),
        enabled: None,
    };
    form.join(filters);
    filter
}

fn listed(found: &ToolListPage, page: u32, limit: u32) -> Raw {
    let pagination = Object::default()
        .with("page", Raw::of(&page))
        .with("limit", Raw::of(&limit))
        .with("total", Raw::of(&found.total))
        .with("totalPages", Raw::of(&found.total.div_ceil(limit as usize)));
    Object::default().with("tools", Raw::array(&found.items)).with("pagination", pagination).raw()
}

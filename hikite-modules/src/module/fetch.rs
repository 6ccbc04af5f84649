//! Paginated lists, nested lists, and lists sent in chunks.

use futures_util::StreamExt;
use futures_util::stream;
use hikite_core::compact::parse;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use serde_json::{Map, Value};

use super::call::ServiceCall;
use super::page::{Paginator, ReceivedPage};
use super::parameter::{ITEMS, ITEMS_MAX};
use super::tool_request::{NestedList, ToolRequest};
use crate::file::ChunkFile;
use crate::scope::VariableScope;

/// Maximum number of nested lists fetched in parallel.
const CONCURRENCY_MAX: usize = 3;

/// Pagination arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageOptions {
    pub(crate) all: bool,
    pub(crate) size: Option<u64>,
    pub(crate) most: Option<u64>,
    pub(crate) cursor: Option<String>,
}

#[derive(Debug)]
pub(crate) struct FetchedValue {
    pub(crate) value: Raw,
    /// Cursor of the next page.
    pub(crate) next: Option<String>,
}

impl PageOptions {
    pub(crate) fn of(arguments: &VariableScope<'_>) -> Self {
        Self {
            all: arguments.get("fetch_all") == &Value::Bool(true),
            size: arguments.get("page_size").as_u64(),
            most: arguments.get("max_items").as_u64(),
            cursor: arguments.get("cursor").as_str().map(str::to_owned),
        }
    }
}

impl ServiceCall<'_> {
    /// Fetches one page, or all pages merged: the last response with the items of all.
    pub(crate) async fn pages(
        &self,
        tool_request: &ToolRequest,
        pager: &Paginator,
        default: u64,
        scope: &VariableScope<'_>,
        page_options: &PageOptions,
    ) -> Result<FetchedValue, Error> {
        let most = if page_options.all { page_options.most.unwrap_or(ITEMS).min(ITEMS_MAX) } else { u64::MAX };
        let size = page_options.size.unwrap_or(if page_options.all { pager.max } else { default }).clamp(1, pager.max);
        let request = tool_request.request.fill(scope)?;
        let (mut cursor, mut items, mut bytes) = (page_options.cursor.clone(), Vec::new(), 0);
        loop {
            let seen = items.len() as u64;
            let size = if pager.shrinks() { size.min(most - seen) } else { size };
            let mut part = request.clone();
            pager.set_parameters(&mut part, cursor.as_ref(), size);
            let answer = self.send(&part, &tool_request.request).await?;
            bytes += answer.body.bytes().len();
            let mut value = parse(&answer.body);
            let count = pager.list(&value).map_or(0, |list| list.len() as u64);
            let told = ReceivedPage { value: &value, headers: &answer.headers, count };
            let next = pager.next(&told, cursor.as_ref(), size, seen + count);
            if !page_options.all && tool_request.nested_list.is_none() {
                return Ok(FetchedValue { value: answer.body, next });
            }
            if let Some(list) = pager.list_mut(&mut value) {
                items.append(list);
            }
            let too_long = bytes > self.service.answer_bytes;
            let is_cut = items.len() as u64 > most;
            if page_options.all {
                self.report_progress(items.len() as u64, pager.total(&value), &format!("{} fetched", items.len()));
            }
            let Some(further) = next.clone().filter(|_| page_options.all && !too_long && (items.len() as u64) < most)
            else {
                items.truncate(usize::try_from(most).unwrap_or(usize::MAX));
                if let Some(nested_list) = &tool_request.nested_list {
                    items = self.nested_list(nested_list, items, scope, nested_list.depth).await?;
                }
                // A truncated page is fetched again by the next call.
                let next = if is_cut { cursor.or(next) } else { next };
                match pager.list_mut(&mut value) {
                    Some(list) => *list = items,
                    None if items.is_empty() => {}
                    None => return Err(Error::new(ErrorKind::ToolExecution, "The last page contains no list.")),
                }
                return Ok(FetchedValue { value: Raw::of(&value), next });
            };
            cursor = Some(further);
        }
    }

    /// Fetches the nested list of each item that has one, up to a depth.
    async fn nested_list(
        &self,
        rule: &NestedList,
        items: Vec<Value>,
        scope: &VariableScope<'_>,
        depth: usize,
    ) -> Result<Vec<Value>, Error> {
        let fill = |item: Value| async move {
            if depth == 0 || !rule.holds.holds(&item, scope)? {
                return Ok(item);
            }
            let list = self.fetch_nested_list(rule, &item, scope).await?;
            let list = Box::pin(self.nested_list(rule, list, scope, depth - 1)).await?;
            let mut item = item;
            if let Some(members) = item.as_object_mut() {
                members.insert(rule.into.clone(), Value::Array(list));
            }
            Ok(item)
        };
        let filled: Vec<Result<Value, Error>> =
            stream::iter(items.into_iter().map(fill)).buffered(CONCURRENCY_MAX).collect().await;
        filled.into_iter().collect()
    }

    async fn fetch_nested_list(
        &self,
        rule: &NestedList,
        item: &Value,
        scope: &VariableScope<'_>,
    ) -> Result<Vec<Value>, Error> {
        let scope = VariableScope::within(scope).with("item", item.clone());
        let request = rule.request.fill(&scope)?;
        let (mut items, mut cursor) = (Vec::new(), None);
        loop {
            let mut part = request.clone();
            if let Some(pager) = &rule.pager {
                pager.set_parameters(&mut part, cursor.as_ref(), pager.max);
            }
            let answer = self.send(&part, &rule.request).await?;
            let mut value = parse(&answer.body);
            let Some(pager) = &rule.pager else {
                let list = if let Value::Array(list) = value { list } else { Vec::new() };
                return Ok(list);
            };
            let count = pager.list(&value).map_or(0, |list| list.len() as u64);
            let told = ReceivedPage { value: &value, headers: &answer.headers, count };
            let next = pager.next(&told, cursor.as_ref(), pager.max, items.len() as u64 + count);
            if let Some(list) = pager.list_mut(&mut value) {
                items.append(list);
            }
            match next {
                Some(next) if (items.len() as u64) < ITEMS_MAX => cursor = Some(next),
                _ => return Ok(items),
            }
        }
    }

    /// Sends a long list in chunks. The lists of the responses are joined; all else is from the last response.
    pub(crate) async fn chunks(
        &self,
        tool_request: &ToolRequest,
        chunk: &ChunkFile,
        scope: &VariableScope<'_>,
    ) -> Result<FetchedValue, Error> {
        let whole = tool_request.request.fill(scope)?;
        let list = whole.body.as_ref().and_then(|body| body.get(&chunk.of)?.as_array()).cloned().unwrap_or_default();
        if list.len() <= chunk.size {
            let answer = self.send(&whole, &tool_request.request).await?;
            return Ok(FetchedValue { value: answer.body, next: None });
        }
        let (mut before, mut joined, total) = (Value::Null, Vec::new(), list.len() as u64);
        let mut sent = 0;
        for part in list.chunks(chunk.size) {
            let scope = VariableScope::within(scope).with("last", before);
            let mut request = tool_request.request.fill(&scope)?;
            request.set_body(&chunk.of, Value::Array(part.to_vec()));
            let answer =
                self.send(&request, &tool_request.request).await.map_err(|error| partially_sent(error, sent, total))?;
            before = parse(&answer.body);
            if let Some(Value::Array(items)) = before.pointer(&pointer(&chunk.join)) {
                joined.extend(items.iter().cloned());
            }
            sent += part.len() as u64;
            self.report_progress(sent, Some(total), &format!("{sent} of {total} sent"));
        }
        match before.pointer_mut(&pointer(&chunk.join)) {
            Some(place) => *place = Value::Array(joined),
            None => before = Value::Object(Map::from_iter([("results".to_owned(), Value::Array(joined))])),
        }
        Ok(FetchedValue { value: Raw::of(&before), next: None })
    }
}

/// Adds how many items were already sent, so that nobody sends them twice.
fn partially_sent(error: Error, sent: u64, total: u64) -> Error {
    if sent == 0 {
        return error;
    }
    let message = format!("{}; {sent} of {total} were already sent.", error.message.trim_end_matches('.'));
    Error { message: message.into(), ..error }
}

fn pointer(path: &str) -> String {
    path.replace('.', "/").trim_end_matches('/').to_owned()
}

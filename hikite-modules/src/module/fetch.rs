//! Paginated lists, nested lists, and lists sent in chunks.

use futures_util::StreamExt;
use futures_util::stream;
use hikite_core::compact::parse;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use serde_json::{Map, Value};

use super::call::Call;
use super::leg::{Below, Leg};
use super::page::{Pager, Part};
use super::parameter::{ITEMS, ITEMS_MAX};
use crate::file::Chunk;
use crate::scope::Scope;

/// Maximum number of nested lists fetched in parallel.
const AT_ONCE: usize = 3;

/// Pagination arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) all: bool,
    pub(crate) size: Option<u64>,
    pub(crate) most: Option<u64>,
    pub(crate) cursor: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) value: Raw,
    /// Cursor of the next page.
    pub(crate) next: Option<String>,
}

impl Asked {
    pub(crate) fn of(arguments: &Scope<'_>) -> Self {
        Self {
            all: arguments.get("fetch_all") == &Value::Bool(true),
            size: arguments.get("page_size").as_u64(),
            most: arguments.get("max_items").as_u64(),
            cursor: arguments.get("cursor").as_str().map(str::to_owned),
        }
    }
}

impl Call<'_> {
    /// Fetches one page, or all pages merged: the last response with the items of all.
    pub(crate) async fn pages(
        &self,
        leg: &Leg,
        pager: &Pager,
        default: u64,
        scope: &Scope<'_>,
        asked: &Asked,
    ) -> Result<Fetched, Error> {
        let most = if asked.all { asked.most.unwrap_or(ITEMS).min(ITEMS_MAX) } else { u64::MAX };
        let size = asked.size.unwrap_or(if asked.all { pager.max } else { default }).clamp(1, pager.max);
        let request = leg.request.fill(scope)?;
        let (mut cursor, mut items, mut bytes) = (asked.cursor.clone(), Vec::new(), 0);
        loop {
            let seen = items.len() as u64;
            let size = if pager.shrinks() { size.min(most - seen) } else { size };
            let mut part = request.clone();
            pager.ask(&mut part, cursor.as_ref(), size);
            let answer = self.send(&part, &leg.request).await?;
            bytes += answer.body.bytes().len();
            let mut value = parse(&answer.body);
            let count = pager.list(&value).map_or(0, |list| list.len() as u64);
            let told = Part { value: &value, headers: &answer.headers, count };
            let next = pager.next(&told, cursor.as_ref(), size, seen + count);
            if !asked.all && leg.below.is_none() {
                return Ok(Fetched { value: answer.body, next });
            }
            if let Some(list) = pager.list_mut(&mut value) {
                items.append(list);
            }
            let too_long = bytes > self.service.answer_bytes;
            let is_cut = items.len() as u64 > most;
            if asked.all {
                self.tell(items.len() as u64, pager.total(&value), &format!("{} fetched", items.len()));
            }
            let Some(further) =
                next.clone().filter(|_| asked.all && !too_long && (items.len() as u64) < most)
            else {
                items.truncate(usize::try_from(most).unwrap_or(usize::MAX));
                if let Some(below) = &leg.below {
                    items = self.below(below, items, scope, below.depth).await?;
                }
                // A truncated page is fetched again by the next call.
                let next = if is_cut { cursor.or(next) } else { next };
                match pager.list_mut(&mut value) {
                    Some(list) => *list = items,
                    None if items.is_empty() => {}
                    None => return Err(Error::new(Kind::ToolExecution, "the last page has no list")),
                }
                return Ok(Fetched { value: Raw::of(&value), next });
            };
            cursor = Some(further);
        }
    }

    /// Fetches the nested list of each item that has one, up to a depth.
    async fn below(
        &self,
        rule: &Below,
        items: Vec<Value>,
        scope: &Scope<'_>,
        depth: usize,
    ) -> Result<Vec<Value>, Error> {
        let fill = |item: Value| async move {
            if depth == 0 || !rule.holds.holds(&item, scope)? {
                return Ok(item);
            }
            let list = self.list_below(rule, &item, scope).await?;
            let list = Box::pin(self.below(rule, list, scope, depth - 1)).await?;
            let mut item = item;
            if let Some(members) = item.as_object_mut() {
                members.insert(rule.into.clone(), Value::Array(list));
            }
            Ok(item)
        };
        let filled: Vec<Result<Value, Error>> =
            stream::iter(items.into_iter().map(fill)).buffered(AT_ONCE).collect().await;
        filled.into_iter().collect()
    }

    async fn list_below(&self, rule: &Below, item: &Value, scope: &Scope<'_>) -> Result<Vec<Value>, Error> {
        let scope = Scope::within(scope).with("item", item.clone());
        let request = rule.request.fill(&scope)?;
        let (mut items, mut cursor) = (Vec::new(), None);
        loop {
            let mut part = request.clone();
            if let Some(pager) = &rule.pager {
                pager.ask(&mut part, cursor.as_ref(), pager.max);
            }
            let answer = self.send(&part, &rule.request).await?;
            let mut value = parse(&answer.body);
            let Some(pager) = &rule.pager else {
                let list = if let Value::Array(list) = value { list } else { Vec::new() };
                return Ok(list);
            };
            let count = pager.list(&value).map_or(0, |list| list.len() as u64);
            let told = Part { value: &value, headers: &answer.headers, count };
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
    pub(crate) async fn chunks(&self, leg: &Leg, chunk: &Chunk, scope: &Scope<'_>) -> Result<Fetched, Error> {
        let whole = leg.request.fill(scope)?;
        let list =
            whole.body.as_ref().and_then(|body| body.get(&chunk.of)?.as_array()).cloned().unwrap_or_default();
        if list.len() <= chunk.size {
            let answer = self.send(&whole, &leg.request).await?;
            return Ok(Fetched { value: answer.body, next: None });
        }
        let (mut before, mut joined, total) = (Value::Null, Vec::new(), list.len() as u64);
        let mut sent = 0;
        for part in list.chunks(chunk.size) {
            let scope = Scope::within(scope).with("last", before);
            let mut request = leg.request.fill(&scope)?;
            request.set_body(&chunk.of, Value::Array(part.to_vec()));
            let answer =
                self.send(&request, &leg.request).await.map_err(|error| halfway(error, sent, total))?;
            before = parse(&answer.body);
            if let Some(Value::Array(items)) = before.pointer(&pointer(&chunk.join)) {
                joined.extend(items.iter().cloned());
            }
            sent += part.len() as u64;
            self.tell(sent, Some(total), &format!("{sent} of {total} sent"));
        }
        match before.pointer_mut(&pointer(&chunk.join)) {
            Some(place) => *place = Value::Array(joined),
            None => before = Value::Object(Map::from_iter([("results".to_owned(), Value::Array(joined))])),
        }
        Ok(Fetched { value: Raw::of(&before), next: None })
    }
}

/// Adds how many items were already sent, so that nobody sends them twice.
fn halfway(error: Error, sent: u64, total: u64) -> Error {
    if sent == 0 {
        return error;
    }
    let message = format!("{}; {sent} of {total} were sent before", error.message);
    Error { message: message.into(), ..error }
}

fn pointer(path: &str) -> String {
    path.replace('.', "/").trim_end_matches('/').to_owned()
}

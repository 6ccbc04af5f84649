//! Pagination: builds the request of the next page and detects the last one. A next link can change query or body
//! parameters, never the URL path or host.

use http::HeaderMap;
use serde_json::Value;

use super::request::FilledRequest;
use crate::escape::decoded;
use crate::expression::{Expression, ExpressionNames};
use crate::file::{PaginationFile, PaginationLocation, PaginationStyle};
use crate::scope::VariableScope;

/// Query parameters taken from a next link.
const PAGINATION_PARAMETERS: [&str; 9] =
    ["page", "cursor", "after", "before", "start", "since", "$skip", "$skiptoken", "next"];

#[derive(Debug)]
pub(crate) struct Paginator {
    style: PaginationStyle,
    location: PaginationLocation,
    /// Parameter for cursor, offset or page number.
    at: Option<String>,
    size: Option<String>,
    pub(crate) max: u64,
    cap: Option<u64>,
    /// Path of members to the list.
    items: Vec<String>,
    next: Option<Expression>,
    more: Option<Expression>,
    last: Option<Expression>,
    total: Option<Expression>,
}

/// Opaque cursor returned to the caller.
pub(crate) type PageCursor = String;

impl Paginator {
    pub(crate) fn new(file: &PaginationFile, names: &ExpressionNames) -> Result<Self, String> {
        let at = match file.style {
            PaginationStyle::Cursor => &file.cursor,
            PaginationStyle::Offset => &file.offset,
            PaginationStyle::Page => &file.number,
            PaginationStyle::Link | PaginationStyle::BodyLink => &None,
        };
        if at.is_none() && !matches!(file.style, PaginationStyle::Link | PaginationStyle::BodyLink) {
            return Err("this style needs the name of its parameter: `cursor`, `offset` or `page`".into());
        }
        if file.next.is_none() && matches!(file.style, PaginationStyle::Cursor | PaginationStyle::BodyLink) {
            return Err("this style needs `next`".into());
        }
        let items = file.items.strip_prefix('.').ok_or("`items` must be a plain path such as `.results`")?;
        let expression = |text: &Option<String>| text.as_ref().map(|text| Expression::new(text, names));
        Ok(Self {
            style: file.style,
            location: file.location,
            at: at.clone(),
            size: file.size.clone(),
            max: file.max.unwrap_or(100),
            cap: file.cap,
            items: items.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect(),
            next: expression(&file.next),
            more: expression(&file.more),
            last: expression(&file.last),
            total: expression(&file.total),
        })
    }

    /// Sets the pagination parameters of a request.
    pub(crate) fn set_parameters(&self, request: &mut FilledRequest, cursor: Option<&PageCursor>, size: u64) {
        if let Some(name) = &self.size {
            self.put(request, name, Value::from(size));
        }
        match (&self.at, cursor) {
            (Some(name), Some(cursor)) => {
                let number = cursor.parse::<u64>().ok().filter(|_| self.style != PaginationStyle::Cursor);
                self.put(request, name, number.map_or_else(|| Value::from(cursor.as_str()), Value::from));
            }
            (None, Some(cursor)) => {
                for (name, value) in pairs(cursor).filter(|(name, _)| PAGINATION_PARAMETERS.contains(&name.as_str())) {
                    request.set_query(&name, value);
                }
            }
            (_, None) => {}
        }
    }

    fn put(&self, request: &mut FilledRequest, name: &str, value: Value) {
        match (self.location, value) {
            (PaginationLocation::Body, value) => request.set_body(name, value),
            (PaginationLocation::Query, Value::String(text)) => request.set_query(name, text),
            (PaginationLocation::Query, other) => request.set_query(name, other.to_string()),
        }
    }

    /// Returns the cursor of the next page, or `None` if this was the last. `before` is the cursor of this page, `seen`
    /// the number of items so far.
    pub(crate) fn next(
        &self,
        part: &ReceivedPage<'_>,
        before: Option<&PageCursor>,
        size: u64,
        seen: u64,
    ) -> Option<PageCursor> {
        let scope = VariableScope::default();
        let says = |expression: &Option<Expression>| {
            let expression = expression.as_ref()?;
            Some(expression.holds(part.value, &scope).unwrap_or(false))
        };
        let ended = says(&self.more) == Some(false) || says(&self.last) == Some(true);
        if ended || self.cap.is_some_and(|cap| seen >= cap) {
            return None;
        }
        let start: u64 = before.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
        let count = part.count;
        let full = count > 0 && (count >= size || self.size.is_none());
        let cursor = match self.style {
            PaginationStyle::Cursor => text(&self.next.as_ref()?.one(part.value, &scope).ok()?)?,
            PaginationStyle::Offset => {
                let next = start + count;
                let total = self.total(part.value);
                let more = count > 0 && total.map_or(full || self.last.is_some(), |total| next < total);
                more.then(|| next.to_string())?
            }
            PaginationStyle::Page => full.then(|| (start.max(1) + 1).to_string())?,
            PaginationStyle::Link => pagination_query(&link_next(part.headers)?)?,
            PaginationStyle::BodyLink => pagination_query(&text(&self.next.as_ref()?.one(part.value, &scope).ok()?)?)?,
        };
        (Some(&cursor) != before).then_some(cursor)
    }

    pub(crate) fn total(&self, value: &Value) -> Option<u64> {
        self.total.as_ref()?.one(value, &VariableScope::default()).ok()?.as_u64()
    }

    pub(crate) fn list<'v>(&self, value: &'v Value) -> Option<&'v Vec<Value>> {
        self.items.iter().try_fold(value, |value, key| value.get(key))?.as_array()
    }

    pub(crate) fn list_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Vec<Value>> {
        self.items.iter().try_fold(value, |value, key| value.get_mut(key))?.as_array_mut()
    }

    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        [&self.next, &self.more, &self.last, &self.total].into_iter().flatten()
    }

    /// Returns `true` if the style allows a smaller last page.
    pub(crate) fn shrinks(&self) -> bool {
        matches!(self.style, PaginationStyle::Cursor | PaginationStyle::Offset)
    }
}

/// One page as received.
pub(crate) struct ReceivedPage<'a> {
    pub(crate) value: &'a Value,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) count: u64,
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the `rel="next"` link (RFC 8288).
fn link_next(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all("link").iter().filter_map(|value| value.to_str().ok());
    links.flat_map(|links| links.split(',')).find_map(|link| {
        let (address, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = parameters.split(';').any(|parameter| {
            let (name, value) = parameter.trim().split_once('=').unwrap_or_default();
            name.eq_ignore_ascii_case("rel") && value.trim_matches('"').split(' ').any(|rel| rel == "next")
        });
        is_next.then(|| address.to_owned())
    })
}

/// Returns the pagination parameters of a next link.
fn pagination_query(address: &str) -> Option<PageCursor> {
    let (_, query) = address.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    let leads = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        PAGINATION_PARAMETERS.contains(&decoded(name).as_str())
    };
    let cursor: Vec<&str> = query.split('&').filter(leads).collect();
    (!cursor.is_empty()).then(|| cursor.join("&"))
}

fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (decoded(name), decoded(value)))
}

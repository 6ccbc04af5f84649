//! Reads all lists that a server declares, page by page.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::sanitize;

use crate::annotation::retain_callable;
use crate::clock::now_ms;
use crate::connection::Connection;
use crate::connection::request_meta::StatelessMeta;
use crate::error::UpstreamError;
use crate::outbound::Outbound;

/// Pause after a server exceeded its list budget: every attempt costs the whole budget.
const PAUSE: Duration = Duration::from_secs(600);

/// Rereads when lists change while they are being read.
const REREADS: usize = 5;

/// Limits for the lists of one server: total bytes, and pages per list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListBudget {
    pub(crate) bytes: usize,
    pub(crate) pages: usize,
}

impl ListBudget {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { bytes: limits.list_bytes, pages: limits.list_pages }
    }
}

/// Reads all lists, and again if the server announces a change meanwhile.
pub(crate) async fn read_lists(connection: &Connection, budget: ListBudget) -> Result<Listing, UpstreamError> {
    let mut listing = read_once(connection, budget).await?;
    for _ in 0..REREADS {
        if !connection.lists_changed.swap(false, Ordering::Relaxed) {
            break;
        }
        listing = read_once(connection, budget).await?;
    }
    Ok(listing)
}

async fn read_once(connection: &Connection, budget: ListBudget) -> Result<Listing, UpstreamError> {
    let mut left = budget;
    let initialize_result = connection.initialize_result().ok_or_else(|| connection.close_reason())?;
    let mut listing = Listing {
        info: initialize_result.info.clone(),
        instructions: initialize_result.instructions.clone(),
        capabilities: initialize_result.capabilities.clone(),
        fetched_at: now(),
        revision: Some(initialize_result.protocol_version.clone()),
        ..Listing::default()
    };
    for kind in ListKind::ALL {
        if kind.is_declared(&initialize_result.capabilities) {
            let list = read_list(connection, kind, (&budget, &mut left.bytes)).await?;
            *listing.of_mut(kind) = list.items;
            listing.ttl_ms = shorter(listing.ttl_ms, list.ttl_ms);
        }
    }
    if connection.is_stateless() && connection.outbound().is_some_and(Outbound::is_http) {
        retain_callable(&connection.name, &mut listing.tools);
    }
    sanitize::listing(&mut listing);
    Ok(listing)
}

/// One list, all its pages merged.
#[derive(Debug, Default)]
struct MergedList {
    items: Vec<ListItem>,
    ttl_ms: Option<u64>,
}

/// Reads one list. `left` holds the bytes of the budget that other lists have not used.
async fn read_list(
    connection: &Connection,
    kind: ListKind,
    (budget, left): (&ListBudget, &mut usize),
) -> Result<MergedList, UpstreamError> {
    let mut list = MergedList::default();
    let mut cursor: Option<Raw> = None;
    let mut seen = HashSet::new();
    for pages in 0.. {
        if pages == budget.pages {
            return Err(too_many_pages(connection, kind, budget).into());
        }
        let params = cursor.take().map(|cursor| Object::default().with("cursor", cursor));
        let page = match read_page(connection, kind, params).await {
            Ok(page) => page,
            // Some servers declare a list without implementing its method. Only the tool list is mandatory.
            Err(error) if error.error.kind == ErrorKind::MethodNotFound && kind != ListKind::Tools => {
                return Ok(list);
            }
            Err(error) => return Err(error),
        };
        *left = left.checked_sub(page.bytes().len()).ok_or_else(|| too_large(connection, kind, budget))?;
        let page = page.object().ok_or_else(|| unreadable(connection, kind))?;
        let part = page.get(kind.member()).and_then(Raw::items).ok_or_else(|| unreadable(connection, kind))?;
        if connection.is_stateless() {
            // Each page has its own TTL; the shortest applies to the whole list. Public and private scope do not differ
            // here: lists are cached per definition, which includes its credentials.
            let ttl = page.get("ttlMs").and_then(|ttl| ttl.decode().ok());
            list.ttl_ms = shorter(list.ttl_ms, ttl.filter(|ttl| *ttl > 0));
        }
        list.items.extend(part.into_iter().filter_map(|raw| ListItem::read(kind, raw)));
        match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
            Some(next) if seen.insert(next.bytes().clone()) => cursor = Some(next.clone()),
            Some(_) | None => break,
        }
    }
    let mut names = HashSet::new();
    list.items.retain(|item| names.insert(item.name.clone()));
    Ok(list)
}

/// Reads one page. A stateless server receives all capabilities with every page, because its lists may depend on them.
async fn read_page(connection: &Connection, kind: ListKind, params: Option<Object>) -> Result<Raw, UpstreamError> {
    if !connection.is_stateless() {
        return connection.request(kind.method(), params, None).await;
    }
    let params = params.unwrap_or_default();
    connection.request_stateless(kind.method(), params, None, StatelessMeta::for_lists()).await
}

fn shorter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn unreadable(connection: &Connection, kind: ListKind) -> Error {
    Error::new(
        ErrorKind::UpstreamUnavailable,
        format!("`{}` returned an unexpected response to `{}`.", connection.name, kind.method()),
    )
}

fn too_large(connection: &Connection, kind: ListKind, budget: &ListBudget) -> Error {
    let message = format!(
        "The lists of `{}` are larger than {} bytes (`limits.list_bytes`); reading stopped at `{}`.",
        connection.name,
        budget.bytes,
        kind.method()
    );
    Error::new(ErrorKind::UpstreamUnavailable, message)
        .hint("Raise `limits.list_bytes` if the server is meant to offer this much.")
        .after(PAUSE)
}

fn too_many_pages(connection: &Connection, kind: ListKind, budget: &ListBudget) -> Error {
    let message = format!(
        "`{}` returned more pages for `{}` than the limit of {} (`limits.list_pages`).",
        connection.name,
        kind.method(),
        budget.pages
    );
    Error::new(ErrorKind::UpstreamUnavailable, message)
        .hint("Raise `limits.list_pages` if the server is meant to offer this much.")
        .after(PAUSE)
}

/// Returns the seconds since 1970. The age of a cached list must survive restarts.
pub(crate) fn now() -> u64 {
    now_ms() / 1000
}

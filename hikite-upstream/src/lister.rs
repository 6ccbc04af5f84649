//! Reads everything a server offers: all lists that it promises, page after page.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use hikite_core::clean;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::{Item, ListKind, Listing};

use crate::annotation::retain_callable;
use crate::claim::Claiming;
use crate::clock::now_ms;
use crate::connection::Connection;
use crate::outbound::Outbound;

/// A server that never ends its list is cut off here.
const PAGES: usize = 1000;

/// How often lists are read again because they changed meanwhile.
const REREADS: usize = 5;

/// Reads all lists; once more if the server says meanwhile that they changed.
pub(crate) async fn read_lists(connection: &Connection) -> Result<Listing, Error> {
    let mut listing = read_once(connection).await?;
    for _ in 0..REREADS {
        if !connection.lists_changed.swap(false, Ordering::Relaxed) {
            break;
        }
        listing = read_once(connection).await?;
    }
    Ok(listing)
}

async fn read_once(connection: &Connection) -> Result<Listing, Error> {
    let welcome = connection.welcome().ok_or_else(|| connection.ending())?;
    let mut listing = Listing {
        info: welcome.info.clone(),
        instructions: welcome.instructions.clone(),
        capabilities: welcome.capabilities.clone(),
        fetched_at: now(),
        revision: Some(welcome.protocol_version.clone()),
        ..Listing::default()
    };
    for kind in ListKind::ALL {
        if kind.is_promised(&welcome.capabilities) {
            let list = read_list(connection, kind).await?;
            *listing.of_mut(kind) = list.items;
            listing.ttl_ms = shorter(listing.ttl_ms, list.ttl_ms);
        }
    }
    if connection.is_stateless() && connection.outbound().is_some_and(Outbound::is_http) {
        retain_callable(&connection.name, &mut listing.tools);
    }
    clean::listing(&mut listing);
    Ok(listing)
}

/// One list, all its pages together.
#[derive(Debug, Default)]
struct List {
    items: Vec<Item>,
    ttl_ms: Option<u64>,
}

async fn read_list(connection: &Connection, kind: ListKind) -> Result<List, Error> {
    let mut list = List::default();
    let mut cursor: Option<Raw> = None;
    let mut seen = HashSet::new();
    for _ in 0..PAGES {
        let params = cursor.take().map(|cursor| Object::default().with("cursor", cursor));
        let page = match read_page(connection, kind, params).await {
            Ok(page) => page,
            // Some servers promise a list and do not know the method; tools are the one list that must be there.
            Err(error) if error.kind == Kind::MethodNotFound && kind != ListKind::Tools => return Ok(list),
            Err(error) => return Err(error),
        };
        let page = page.object().ok_or_else(|| unreadable(connection, kind))?;
        let part =
            page.get(kind.member()).and_then(Raw::items).ok_or_else(|| unreadable(connection, kind))?;
        if connection.is_stateless() {
            // Each page has its own clock; the first that runs out ends them all. Whether it is public or
            // private makes no difference: lists are kept per definition, its credentials included.
            let ttl = page.get("ttlMs").and_then(|ttl| ttl.decode().ok());
            list.ttl_ms = shorter(list.ttl_ms, ttl.filter(|ttl| *ttl > 0));
        }
        list.items.extend(part.into_iter().filter_map(|raw| Item::read(kind, raw)));
        match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
            Some(next) if seen.insert(next.bytes().clone()) => cursor = Some(next.clone()),
            Some(_) | None => break,
        }
    }
    let mut names = HashSet::new();
    list.items.retain(|item| names.insert(item.name.clone()));
    Ok(list)
}

/// A stateless server is told with every page that everything may be asked: what it offers may depend on it.
async fn read_page(connection: &Connection, kind: ListKind, params: Option<Object>) -> Result<Raw, Error> {
    if !connection.is_stateless() {
        return connection.request(kind.method(), params, None).await;
    }
    let params = params.unwrap_or_default();
    connection.request_stateless(kind.method(), params, None, Claiming::for_lists()).await
}

fn shorter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn unreadable(connection: &Connection, kind: ListKind) -> Error {
    Error::new(
        Kind::UpstreamUnavailable,
        format!("`{}` answered `{}` with something else", connection.name, kind.method()),
    )
}

/// Seconds since 1970: the age of a cached list is told across restarts.
pub(crate) fn now() -> u64 {
    now_ms() / 1000
}

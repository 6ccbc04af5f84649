//! Reads everything a server offers: all lists that it promises, page after page.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::{Item, ListKind, Listing};

use crate::connection::Connection;

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
        ..Listing::default()
    };
    for kind in ListKind::ALL {
        if connection.can(kind.capability()) {
            *listing.of_mut(kind) = read_list(connection, kind).await?;
        }
    }
    Ok(listing)
}

async fn read_list(connection: &Connection, kind: ListKind) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let mut cursor: Option<Raw> = None;
    let mut seen = HashSet::new();
    for _ in 0..PAGES {
        let params = cursor.take().map(|cursor| Object::default().with("cursor", cursor));
        let page = match connection.request(kind.method(), params, None).await {
            Ok(page) => page,
            // Some servers promise a list and do not know the method; tools are the one list that must be there.
            Err(error) if error.kind == Kind::MethodNotFound && kind != ListKind::Tools => return Ok(items),
            Err(error) => return Err(error),
        };
        let page = page.object().ok_or_else(|| unreadable(connection, kind))?;
        let part =
            page.get(kind.member()).and_then(Raw::items).ok_or_else(|| unreadable(connection, kind))?;
        items.extend(part.into_iter().filter_map(|raw| Item::read(kind, raw)));
        match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
            Some(next) if seen.insert(next.bytes().clone()) => cursor = Some(next.clone()),
            Some(_) | None => break,
        }
    }
    let mut names = HashSet::new();
    items.retain(|item| names.insert(item.name.clone()));
    Ok(items)
}

fn unreadable(connection: &Connection, kind: ListKind) -> Error {
    Error::new(
        Kind::UpstreamUnavailable,
        format!("`{}` answered `{}` with something else", connection.name, kind.method()),
    )
}

#[expect(clippy::disallowed_methods, reason = "the age of a cached list is told across restarts")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

//! Listing state of one connection: announced changes that are still to be read, and a listing that only its sessions
//! see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use arc_swap::ArcSwapOption;
use hikite_core::caller::SessionId;
use hikite_core::listing::{ListKind, Listing};
use parking_lot::Mutex;

use crate::reread_pace::RereadPace;

use super::{Connection, ConnectionNotice, ConnectionPurpose};

/// Listing state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionListing {
    /// Lists to reread: one bit per announced kind, and one for any other reason.
    pub(crate) pending_kinds: AtomicU8,
    /// Set while a task is reading them.
    pub(crate) is_rereading: AtomicBool,
    pub(crate) pace: Mutex<RereadPace>,
    /// Listing of this connection, where it differs from the common one.
    pub(crate) own: ArcSwapOption<Listing>,
    /// Set while a task waits for the end of the connection, to drop `own`.
    pub(crate) is_watched: AtomicBool,
}

const OTHER_REASON: u8 = 1 << 7;

/// Lists that a server may announce as changed.
pub(crate) const KINDS: [(&str, ListKind, u8); 3] = [
    ("notifications/tools/list_changed", ListKind::Tools, 1),
    ("notifications/resources/list_changed", ListKind::Resources, 1 << 1),
    ("notifications/prompts/list_changed", ListKind::Prompts, 1 << 2),
];

impl ConnectionListing {
    pub(crate) fn own(&self) -> Option<Arc<Listing>> {
        self.own.load_full()
    }
}

impl Connection {
    /// Returns the sessions that use this connection.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        match &self.purpose {
            ConnectionPurpose::Owned(session) => vec![session.id],
            ConnectionPurpose::Shared | ConnectionPurpose::Lists => {
                self.calling_sessions.lock().keys().copied().collect()
            }
        }
    }
}

/// Handles a `list_changed` notification. At most one reread runs at a time.
pub(crate) fn on_list_changed(connection: &Arc<Connection>, method: &str) {
    let bit = KINDS.iter().find(|(known, ..)| *known == method).map_or(OTHER_REASON, |(.., bit)| *bit);
    schedule_reread(connection, bit);
}

/// Rereads the lists because they may have changed.
pub(crate) fn reread(connection: &Arc<Connection>) {
    schedule_reread(connection, OTHER_REASON);
}

fn schedule_reread(connection: &Arc<Connection>, bit: u8) {
    connection.listing_state.pending_kinds.fetch_or(bit, Ordering::AcqRel);
    if !connection.listing_state.is_rereading.swap(true, Ordering::AcqRel) {
        (connection.notices)(ConnectionNotice::ListChanged(Arc::clone(connection)));
    }
}

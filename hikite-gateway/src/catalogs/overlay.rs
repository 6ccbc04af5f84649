//! Catalogs for sessions whose upstream session is offered different tools, for example after a login. Such a session
//! gets a catalog built from the shared one plus its own listings, under the same pins, permissions and switches.
//! Sessions with equal listings share one catalog. All other sessions use the shared snapshot and pay nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use hikite_core::caller::{Caller, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::listing::{ListKind, Listing};
use hikite_core::offer::ModuleOffer;
use hikite_core::share::Allowance;

use super::Catalogs;
use super::state::CatalogState;
use crate::off_worker::run_blocking;
use crate::snapshot::Snapshot;
use crate::viewer::Viewer;
use hikite_store::clock::now_ms;

type BySession = HashMap<SessionId, Arc<Overlay>>;

#[derive(Default)]
pub(super) struct Overlays(ArcSwap<BySession>);

/// The listings of one or more sessions that are offered the same, and the resulting snapshot.
struct Overlay {
    base: Arc<Snapshot>,
    lists: Vec<(Arc<str>, Arc<Listing>)>,
    snapshot: Arc<Snapshot>,
}

impl Overlay {
    fn is_of(&self, base: &Arc<Snapshot>, lists: &[(Arc<str>, Arc<Listing>)]) -> bool {
        let same = |one: &(Arc<str>, Arc<Listing>), other: &(Arc<str>, Arc<Listing>)| {
            one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1)
        };
        Arc::ptr_eq(&self.base, base)
            && self.lists.len() == lists.len()
            && self.lists.iter().zip(lists).all(|(one, other)| same(one, other))
    }
}

impl Catalogs {
    pub(super) fn own_snapshot(&self, viewer: Viewer<'_>) -> Option<Arc<Snapshot>> {
        let overlays = self.overlays.0.load();
        let overlay = overlays.get(&viewer.session?)?;
        let current = self.snapshot();
        if Arc::ptr_eq(&overlay.base, &current) {
            return Some(Arc::clone(&overlay.snapshot));
        }
        // A rebuild is due. Until then, apply the current permissions to the old catalog.
        Some(Arc::new(overlay.snapshot.with_bounds(current.bounds().clone())))
    }

    /// Returns `true` if a session has its own catalog and is notified of list changes separately.
    pub(super) fn has_overlay(&self, session: SessionId) -> bool {
        self.overlays.0.load().contains_key(&session)
    }

    pub(crate) fn forget_overlay(&self, session: SessionId) {
        // Not under the catalog builders' lock: a builder may be the one that drops a session last.
        if self.has_overlay(session) {
            self.overlays.0.rcu(|overlays| {
                let mut after = BySession::clone(overlays);
                after.remove(&session);
                after
            });
        }
    }

    /// Rebuilds all overlays after the shared snapshot changed.
    pub(super) fn rebuild_overlays(&self) {
        let sessions: Vec<SessionId> = self.overlays.0.load().keys().copied().collect();
        if !sessions.is_empty() {
            self.overlay(&sessions);
        }
    }

    /// Rebuilds the overlays of these sessions and notifies them of changed lists.
    pub(super) fn overlay(&self, sessions: &[SessionId]) {
        let look = |state: &mut CatalogState| {
            let base = self.snapshot();
            let before = self.overlays.0.load_full();
            let mut after = BySession::clone(&before);
            // Remove all of them first: overlays of an older base must not count against the limit.
            after.retain(|session, _| !sessions.contains(session));
            let known = |session: &SessionId| self.sessions.get(*session);
            for session in sessions.iter().filter_map(known) {
                if let Some(overlay) = self.build_overlay(state, &base, &session, (&before, &after)) {
                    after.insert(session.id, overlay);
                }
            }
            self.overlays.0.store(Arc::new(after.clone()));
            // Sessions that ended meanwhile.
            for gone in after.keys().filter(|session| self.sessions.get(**session).is_none()) {
                self.forget_overlay(*gone);
            }
            let list = |overlays: &BySession, viewer: Viewer<'_>, surfaces, kind: ListKind| {
                let own = viewer.session.and_then(|session| overlays.get(&session));
                let snapshot = own.map_or(&base, |own| &own.snapshot);
                snapshot.list(viewer.caller, surfaces, kind, &self.limits)
            };
            let differs = |viewer: Viewer<'_>, surfaces, kind| {
                list(&before, viewer, surfaces, kind) != list(&after, viewer, surfaces, kind)
            };
            self.sessions.notify_list_changes(Some(sessions), differs);
        };
        run_blocking(|| self.current.with(look));
    }

    /// Returns the overlay of a session; `None` if it sees the shared catalog, or if the limit is reached.
    fn build_overlay(
        &self,
        state: &mut CatalogState,
        base: &Arc<Snapshot>,
        session: &Arc<Session>,
        (before, now): (&BySession, &BySession),
    ) -> Option<Arc<Overlay>> {
        let own = |rule: &ModuleRule| Some((Arc::clone(&rule.name), rule.source.listing_of(session.id)?));
        let lists: Vec<(Arc<str>, Arc<Listing>)> = base.catalog.rules().filter_map(own).collect();
        if lists.is_empty() {
            return None;
        }
        let known = now.values().chain(before.values()).find(|overlay| overlay.is_of(base, &lists));
        if let Some(known) = known {
            return Some(Arc::clone(known));
        }
        if !self.has_capacity(&session.caller, now) {
            tracing::warn!(
                session = session.id.0,
                "too many sessions have their own lists (`limits.own_lists`); this session gets the shared list"
            );
            return None;
        }
        let judged = |(rule, listing): (_, &Arc<Listing>)| state.pins.check_session_listing(rule, listing, now_ms());
        let of = |name: &Arc<str>| lists.iter().find(|(module, _)| module == name).map(|(_, list)| list);
        let offers: Vec<ModuleOffer> =
            base.catalog.rules().filter_map(|rule| Some((rule, of(&rule.name)?))).map(judged).collect();
        let generations = lists.iter().map(|(module, _)| (Arc::clone(module), self.generations.next()));
        let snapshot = base.apart(Arc::new(base.catalog.with_offers(&offers)), generations.collect());
        Some(Arc::new(Overlay { base: Arc::clone(base), lists, snapshot: Arc::new(snapshot) }))
    }

    /// Returns `true` if one more overlay fits the total limit and the caller's share.
    fn has_capacity(&self, caller: &Caller, now: &BySession) -> bool {
        let most = Allowance::of(self.limits.own_lists, self.limits.caller_share);
        let distinct = |of: &dyn Fn(SessionId) -> bool| {
            let own = now.iter().filter(|(session, _)| of(**session));
            own.map(|(_, overlay)| Arc::as_ptr(overlay)).collect::<HashSet<_>>().len()
        };
        let is_theirs =
            |session: SessionId| self.sessions.get(session).is_some_and(|other| other.caller.subject == caller.subject);
        distinct(&|_| true) < most.all && distinct(&is_theirs) < most.each
    }
}

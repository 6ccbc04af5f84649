//! The retired words, what to write instead, and where one may stay for now.

use super::RetiredException;

/// Words without another sense in this workspace: not even a part of an identifier.
pub(super) const WORDS: &[(&str, &str)] = &[
    ("abilities", "capabilities"),
    ("brake", "login throttle"),
    ("deed", "event or action"),
    ("desk", "the thing itself: a session, a request, an inbox"),
    ("door", "guard, gateway or entry point"),
    ("drawer", "table or document"),
    ("entrance", "identity provider"),
    ("exchanger", "credential provider"),
    ("house", "runtime, gateway or hikite"),
    ("keeper", "origin or worker"),
    ("outgrow", "capabilities_exceeded"),
    ("parked", "suspended"),
    ("parking", "suspended calls"),
    ("roster", "tool registry"),
    ("seat", "request context"),
    ("shelf", "result store or source"),
    ("sieve", "jq runner"),
    ("workshop", "config admin"),
];

/// Phrases, in lower case.
pub(super) const PHRASES: &[(&str, &str)] = &[
    ("failures and repetition", "\"timeouts and retries\""),
    ("in a circle", "\"dependency cycle\""),
    ("kept results", "\"result cache\""),
];

/// Names of types.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("Arrival", "`RequestContext`"),
    ("Asked", "a noun that says what was asked"),
    ("Behind", "`GuardService`"),
    ("Book", "`PinStore`, `GrantTable` or `BreakerState`"),
    ("Found", "a noun that says what was found"),
    ("Gift", "a noun that says what it is"),
    ("Given", "a noun that says what is given, like `CatalogInput`"),
    ("Hello", "`InitializeRequest`"),
    ("Inside", "`RequestContext`"),
    ("Kept", "a noun that says what is stored, like `UserRecord`"),
    ("Lane", "`StatelessSession`"),
    ("Leaving", "`RequestContext`"),
    ("Lent", "`PooledConnection`"),
    ("Meant", "a noun that says what is meant"),
    ("Memory", "`RevisionCache` or `SearchMemory`"),
    ("Pass", "`PeerToken`"),
    ("Registry", "`ToolRegistry` or `RegistryService`"),
    ("Safe", "`SecretStore`"),
    ("Seen", "a noun that says what was seen"),
    ("Ticket", "`PendingRequest` or `ContinuationToken`"),
    ("Told", "a noun that says what was told"),
    ("Wanted", "a noun that says what is wanted, like `OutputOptions`"),
    ("Welcome", "`InitializeResult`"),
];

/// Names of functions.
pub(super) const FUNCTIONS: &[(&str, &str)] = &[
    ("aside", "`off_worker`, `unmetered` or `detached`"),
    ("doubt", "`invalidate`"),
    ("gains", "`impact`"),
    ("greet", "`handshake`"),
    ("often", "`tf`"),
    ("patience", "`retry_after`"),
    ("rarity", "`idf`"),
    ("see_off", "`drain`"),
    ("sift_with", "`JqRunner`"),
    ("tries", "`attempts`"),
    ("work_with", "`ConfigAdmin`"),
];

/// Names of modules.
pub(super) const MODULES: &[(&str, &str)] = &[
    ("about", "`call_policy` or `summary`"),
    ("aside", "`off_worker`"),
    ("clean", "`sanitize`"),
    ("exchange", "`accounts`"),
    ("greeting", "`handshake`"),
    ("lane", "`session`"),
    ("narrow", "`restrict`"),
    ("neighbours", "`peers`"),
    ("open", "`describe`"),
    ("patience", "`retry_after`"),
    ("present", "`render`"),
    ("saving", "`token_savings`"),
    ("ticket", "`continuation`"),
    ("tries", "`attempts`"),
];

/// Names that hold a retired word and stay, because others rely on them.
pub(super) const KEPT_NAMES: &[(&str, &str)] =
    &[("parked_calls", "the deprecated config key `limits.parked_calls`"), ("parking_lot", "a crate of others")];

/// Places where a word may stay for now. The list may only get shorter.
pub(super) const EXCEPTIONS: &[RetiredException] =
    &[exception("hikite-store/src/", "drawer", "a SQL table that the previous version reads")];

const fn exception(path: &'static str, word: &'static str, reason: &'static str) -> RetiredException {
    RetiredException { path, word, reason }
}

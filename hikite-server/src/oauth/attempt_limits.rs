//! Rate limits of endpoints that could be abused.

use std::net::IpAddr;
use std::sync::Arc;

use crate::bucket::Buckets;

#[derive(Debug, Default)]
pub(crate) struct AttemptLimits {
    /// Wrong passwords, by user name.
    pub(super) names: Buckets<Arc<str>>,
    /// Client registrations, by address.
    pub(super) registrations: Buckets<IpAddr>,
    /// Fetched client metadata documents, by address.
    pub(super) lookups: Buckets<IpAddr>,
    /// Stored login and passkey challenges, by address.
    pub(super) challenges: Buckets<IpAddr>,
}

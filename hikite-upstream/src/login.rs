//! Wait for the OAuth login of an upstream.

use std::time::Duration;

use hikite_core::source::SourceEvent;

use crate::upstream::UpstreamInner;

/// Interval between checks for a login through another process.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn is_needed(upstream: &UpstreamInner) -> bool {
    upstream.authorization.as_ref().is_some_and(|authorization| authorization.is_needed())
}

/// Waits until somebody has logged in, here or through another process.
pub(crate) async fn wait(upstream: &UpstreamInner) {
    let Some(authorization) = &upstream.authorization else { return std::future::pending().await };
    loop {
        tokio::select! {
            () = authorization.logged_in.notified() => return,
            // The login state that others see has changed.
            () = authorization.changed.notified() => (upstream.listener)(SourceEvent::ListChanged),
            () = tokio::time::sleep(POLL_INTERVAL) => {
                if authorization.is_needed() && authorization.has_newer_tokens().await {
                    return;
                }
            }
        }
    }
}

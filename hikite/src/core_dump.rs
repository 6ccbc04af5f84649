//! Disables core dumps, because the process holds keys and tokens. On Linux this also keeps other processes of the
//! user from reading its memory. `HIKITE_DUMPABLE=1` leaves dumps enabled, for debuggers and profilers.

/// Environment variable that leaves core dumps enabled.
const VARIABLE: &str = "HIKITE_DUMPABLE";

/// Disables core dumps for this process, unless `HIKITE_DUMPABLE` is set. Child processes decide for themselves.
pub(crate) fn disable() {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "1") {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses has no core dumps to disable; hikite works without.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

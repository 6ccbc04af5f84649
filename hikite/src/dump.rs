//! Core dumps: a process that holds keys and tokens leaves none behind. Linux then also keeps other processes of the same
//! user from reading its memory. `HIKITE_DUMPABLE=1` leaves it as it is, for debuggers and measurements.

/// The variable that keeps core dumps.
const VARIABLE: &str = "HIKITE_DUMPABLE";

/// Switches core dumps off for this process, unless they are asked for. Programs that it starts decide for themselves.
pub(crate) fn forbid() {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "1") {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses this has none to give; hikite works all the same.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

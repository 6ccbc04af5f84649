//! The swap under a scheduler that explores the interleavings of readers and writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use shuttle::thread;

mod parts {
    use std::sync::Arc;

    /// A mutex without poisoning, whose holders the scheduler may preempt anywhere.
    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no test panics under the lock")
        }
    }

    /// The atomic pointer: each load and each store is one step.
    pub(super) struct Published<T>(shuttle::sync::Mutex<Arc<T>>);

    impl<T> Published<T> {
        pub(super) fn from_pointee(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(Arc::new(value)))
        }

        pub(super) fn load_full(&self) -> Arc<T> {
            Arc::clone(&self.0.lock().expect("one step"))
        }

        pub(super) fn store(&self, value: Arc<T>) {
            *self.0.lock().expect("one step") = value;
        }
    }
}

#[path = "body.rs"]
#[expect(clippy::duplicate_mod, reason = "the same code over other parts is the point")]
mod body;
use body::Swap;

/// Two views of one registry that must never disagree, with the number of the change that made them.
struct Published {
    change: usize,
    enabled: Vec<usize>,
    disabled: Vec<usize>,
}

const TOOLS: usize = 3;

fn make(switches: &BTreeMap<usize, bool>, before: &Published) -> Published {
    let pick = |wanted: bool| {
        let picked = switches.iter().filter(move |(_, on)| **on == wanted).map(|(tool, _)| *tool).collect();
        thread::yield_now();
        picked
    };
    Published { change: before.change + 1, enabled: pick(true), disabled: pick(false) }
}

fn registry() -> Arc<Swap<BTreeMap<usize, bool>, Published>> {
    let switches: BTreeMap<usize, bool> = (0..TOOLS).map(|tool| (tool, true)).collect();
    let first = Published { change: 0, enabled: (0..TOOLS).collect(), disabled: Vec::new() };
    Arc::new(Swap::new(switches, first))
}

fn callers_while_tools_are_switched() {
    let registry = registry();
    let switching = (0..TOOLS).map(|tool| {
        let registry = Arc::clone(&registry);
        thread::spawn(move || {
            let numbers = registry.replace(
                |switches, before| {
                    switches.insert(tool, false);
                    make(switches, before)
                },
                |before, after| (before.change, after.change),
            );
            assert_eq!(numbers.0 + 1, numbers.1, "nothing came between");
            assert!(registry.load().disabled.contains(&tool), "what was changed is shown from then on");
        })
    });
    let calling = (0..2).map(|_| {
        let registry = Arc::clone(&registry);
        thread::spawn(move || {
            let mut last = 0;
            for _ in 0..3 {
                let published = registry.load();
                assert_eq!(published.enabled.len() + published.disabled.len(), TOOLS, "one moment, not two halves");
                assert!(published.change >= last, "time does not run backwards");
                last = published.change;
            }
        })
    });
    let threads: Vec<_> = switching.chain(calling).collect();
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    let published = registry.load();
    assert_eq!((published.change, published.disabled.len()), (TOOLS, TOOLS), "no change is lost");
    assert!(registry.with(|switches| switches.values().all(|on| !on)), "and it is shown as it is kept");
}

#[test]
fn no_interleaving_tears_the_snapshot_or_loses_a_change() {
    shuttle::check_random(callers_while_tools_are_switched, 20_000);
    shuttle::check_pct(callers_while_tools_are_switched, 5_000, 3);
}

//! Tests of eviction order and of place counts.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(second: u32) -> Duration {
    SECOND * second
}

fn shares(all: usize, each: usize, reserved: usize) -> Shares<u32> {
    Shares::new(Allowance { all, each, reserved })
}

/// Returns the second encoded in the value as the time since which the place has been idle.
#[expect(clippy::trivially_copy_pass_by_ref, clippy::unnecessary_wraps, reason = "the shape that `take` asks for")]
fn idle(value: &u32, _: bool) -> Option<Duration> {
    Some(at(*value))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that `take` asks for")]
fn busy(_: &u32, _: bool) -> Option<Duration> {
    None
}

fn who(name: &str) -> ShareHolder {
    ShareHolder::unprivileged(name)
}

fn admin() -> ShareHolder {
    ShareHolder { name: "owner".into(), privileged: true }
}

#[test]
fn a_part_is_never_nothing_and_few_places_are_not_set_aside() {
    assert_eq!(Allowance::of(10_000, 50), Allowance { all: 10_000, each: 5000, reserved: 625 });
    assert_eq!(Allowance::of(4, 50), Allowance { all: 4, each: 2, reserved: 1 });
    assert_eq!(Allowance::of(1, 50), Allowance { all: 1, each: 1, reserved: 0 });
    assert_eq!(Allowance::of(usize::MAX, 100).each, usize::MAX);
    assert_eq!(Allowance::of(16, 50).without_reserve().reserved, 0);
}

#[test]
fn who_has_its_share_loses_its_own_longest_idle_place() {
    let mut shares = shares(10, 2, 0);
    for second in [1, 2] {
        assert_eq!(shares.take(&who("a"), second, at(second), idle).map(|taken| taken.evicted), Ok(None));
    }
    assert_eq!(shares.take(&who("b"), 0, at(0), idle).map(|taken| taken.evicted), Ok(None));
    let evicted = shares.take(&who("a"), 3, at(3), idle).expect("room").evicted.expect("one gave way");
    assert_eq!((&*evicted.holder, evicted.value), ("a", 1), "though that of b is older");
    assert_eq!(shares.take(&who("a"), 4, at(4), busy), Err(LimitExceeded::Share));
    assert_eq!((shares.held("a"), shares.held("b"), shares.total()), (2, 1, 3));
}

#[test]
fn when_all_is_taken_whoever_holds_most_gives_way() {
    let mut shares = shares(5, 3, 0);
    for (name, second) in [("a", 1), ("b", 2), ("b", 3), ("b", 4), ("a", 5)] {
        shares.take(&who(name), second, at(second), idle).expect("room");
    }
    let evicted = shares.take(&who("c"), 6, at(6), idle).expect("room").evicted.expect("one gave way");
    assert_eq!((&*evicted.holder, evicted.value), ("b", 2));
    // A holder with as many places as the others evicts none of theirs.
    let mine_stays = |value: &u32, own: bool| if own { None } else { Some(at(*value)) };
    assert_eq!(shares.take(&who("a"), 7, at(7), mine_stays), Err(LimitExceeded::All));
    assert_eq!(shares.take(&who("d"), 7, at(7), busy), Err(LimitExceeded::All));
    assert_eq!(shares.total(), 5);
}

#[test]
fn the_order_follows_what_was_used_since() {
    let mut shares: Shares<u32> = shares(9, 3, 0);
    for second in [1, 2, 3] {
        shares.take(&who("a"), second, at(second), idle).expect("room");
    }
    // The first was used again at 9; the second is in use.
    let used = |value: &u32, _: bool| match value {
        1 => Some(at(9)),
        2 => None,
        other => Some(at(*other)),
    };
    let evicted = shares.take(&who("a"), 10, at(10), used).expect("room").evicted.expect("one gave way");
    assert_eq!(evicted.value, 3);
    let evicted = shares.take(&who("a"), 11, at(11), used).expect("room").evicted.expect("one gave way");
    assert_eq!(evicted.value, 1);
}

#[test]
fn an_admin_gets_in_whoever_holds_what() {
    let mut shares = shares(4, 2, 1);
    for name in ["a", "a", "b"] {
        shares.take(&who(name), 0, at(1), busy).expect("room");
    }
    assert_eq!(shares.take(&who("b"), 0, at(1), busy), Err(LimitExceeded::All), "the last place is set aside");
    assert!(shares.take(&admin(), 0, at(1), busy).is_ok());
    assert_eq!(shares.take(&admin(), 0, at(1), busy), Err(LimitExceeded::All), "there is an end");
}

#[test]
fn a_place_is_given_back_once() {
    let mut shares = shares(2, 1, 0);
    let number = shares.take(&who("a"), 7, at(1), busy).expect("room").number;
    assert_eq!(shares.free("b", number), None);
    assert_eq!((shares.free("a", number), shares.free("a", number)), (Some(7), None));
    assert_eq!((shares.total(), shares.top(9).len()), (0, 0));
    for name in ["b", "a"] {
        shares.take(&who(name), 0, at(1), busy).expect("room");
    }
    assert_eq!(shares.top(1), [(Arc::from("a"), 1)]);
}

#[test]
fn a_refusal_says_whose_fault_it_is_and_when_to_come_back() {
    let (own, all) =
        (LimitExceeded::Share.error("open streams", "streams"), LimitExceeded::All.error("batches", "batches"));
    assert_eq!((own.kind, all.kind), (ErrorKind::RateLimit, ErrorKind::Overloaded));
    assert!(own.retry_after.is_some() && all.retry_after.is_some());
    assert!(own.hint.is_some_and(|hint| hint.contains("limits.streams")));
    let long = Caller::named("é".repeat(1000));
    assert_eq!(ShareHolder::from(&long).name.chars().count(), NAME_CHARS_MAX);
}

//! Two and three nodes on one store, without HTTP.

use hikite_store::{Store, StoreUrl};

use super::*;

struct NodeFixture {
    _folder: tempfile::TempDir,
    url: StoreUrl,
}

impl NodeFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let url = StoreUrl::file(folder.path().join("store.db"));
        Self { _folder: folder, url }
    }

    async fn node(&self, id: &str) -> Arc<Nodes> {
        let store = Store::open(&self.url).await.expect("a store");
        Nodes::join(store, &format!("http://{id}"), id, 10).await.expect("joined")
    }
}

impl Nodes {
    /// Expires the lease and the time of the last renewal attempt.
    fn expire_lease(&self) {
        let own = self.own.load();
        *own.until.lock() = Instant::now();
        *own.last_attempt.lock() = Instant::now().checked_sub(TRY_AGAIN * 2).expect("a machine that runs for seconds");
    }
}

async fn owner(node: &Nodes, session: &str, home: &str) -> String {
    match node.owner(session, home).await.expect("an owner") {
        Owner::Local => "us".into(),
        Owner::Other(peer) => peer.id.to_string(),
        Owner::Nobody => "nobody".into(),
    }
}

#[tokio::test]
async fn a_session_stays_where_it_began_while_that_is_there() {
    let fixture = NodeFixture::new();
    let (one, two) = (fixture.node("one").await, fixture.node("two").await);
    assert_eq!(owner(&two, "s", "one").await, "one");
    assert_eq!(two.known_owner("s", "one").expect("known").url.as_ref(), "http://one");
    assert_eq!(owner(&one, "s", "one").await, "nobody", "it is not in our table, so that it has ended");
    assert!(one.holds("one").await && !one.holds("two").await);
}

#[tokio::test]
async fn one_alone_takes_over_what_a_leaving_one_held() {
    let fixture = NodeFixture::new();
    let (one, two, three) = (fixture.node("one").await, fixture.node("two").await, fixture.node("three").await);
    one.refresh_peers().await.expect("looked");
    one.leave().await;
    assert!(!one.holds("one").await);
    // The other nodes may have cached it; then they ask again.
    for node in [&two, &three] {
        node.refresh_peers().await.expect("looked");
    }
    assert_eq!(owner(&two, "s", "one").await, "us");
    assert_eq!(owner(&three, "s", "one").await, "two");
    assert_eq!(three.known_owner("s", "one").expect("remembered").id.as_ref(), "two");
    for session in ["other", "s"] {
        assert_ne!(owner(&one, session, "one").await, "us", "who leaves takes nothing");
    }
    two.leave().await;
    three.refresh_peers().await.expect("looked");
    assert_eq!(owner(&three, "s", "one").await, "us", "from one holder to the next");
}

#[tokio::test]
async fn who_was_declared_gone_holds_nothing_any_more() {
    let fixture = NodeFixture::new();
    let (one, two) = (fixture.node("one").await, fixture.node("two").await);
    let lost = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&lost);
    one.on_lost(move || told.store(true, Ordering::Relaxed));
    // Expires the node's lease in the store, like a long suspension.
    two.store.nodes().renew("one", Duration::ZERO).await.expect("its time is over");
    assert!(two.store.nodes().is_gone("one").await.expect("asked"));
    two.refresh_peers().await.expect("looked");
    assert_eq!(owner(&two, "s", "one").await, "us");
    one.expire_lease();
    assert!(!one.holds("one").await, "it asks before it serves");
    assert!(lost.load(Ordering::Relaxed));
    let name = one.id();
    assert_ne!(&*name, "one");
    assert!(one.holds(&name).await, "it goes on under another name");
    assert_eq!(owner(&one, "s", "one").await, "two");
    assert_eq!(owner(&two, "t", &name).await, *name, "and is known by it");
}

#[tokio::test]
async fn who_only_was_late_goes_on_as_before() {
    let fixture = NodeFixture::new();
    let one = fixture.node("one").await;
    one.store.nodes().renew("one", Duration::ZERO).await.expect("its time is over");
    one.expire_lease();
    assert!(one.holds("one").await, "nobody took anything");
    assert!(!one.store.nodes().is_gone("one").await.expect("asked"), "it was renewed");
}

#[tokio::test]
async fn what_is_over_is_taken_up_by_nobody() {
    let fixture = NodeFixture::new();
    let (one, two) = (fixture.node("one").await, fixture.node("two").await);
    one.end("s").await.expect("ended");
    one.end("s").await.expect("twice is no harm");
    one.leave().await;
    two.refresh_peers().await.expect("looked");
    assert_eq!(owner(&two, "s", "one").await, "nobody");
}

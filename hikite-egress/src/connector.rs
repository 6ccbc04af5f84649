//! Opens connections. With a guard, each resolved address is checked here, and the connection goes to exactly that
//! address: the name is not resolved again, which rules out DNS rebinding.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::allow_list::AllowList;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ConnectFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// The guard refused the address. The error gives no reason, so that nobody can probe the internal network with it.
#[derive(Debug, thiserror::Error)]
#[error("the address is not allowed")]
pub(crate) struct AddressRefused;

pub(crate) fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<AddressRefused>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector<Resolver>,
    allow: Option<Arc<AllowList>>,
}

/// Resolves host names, once per connection.
#[derive(Clone)]
pub(crate) struct Resolver {
    lookup: NameLookup,
    allow: Option<Arc<AllowList>>,
}

#[cfg(test)]
type LookupScript = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

#[derive(Clone)]
enum NameLookup {
    System(GaiResolver),
    #[cfg(test)]
    Scripted(Arc<LookupScript>),
}

impl Connector {
    pub(crate) fn new(allow: Option<Arc<AllowList>>) -> Self {
        Self::with(NameLookup::System(GaiResolver::new()), allow)
    }

    fn with(lookup: NameLookup, allow: Option<Arc<AllowList>>) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { lookup, allow: allow.clone() });
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.enforce_http(false);
        Self { tcp, allow }
    }

    /// Checks IP literals, which never reach the resolver.
    fn is_refused(&self, uri: &Uri) -> bool {
        let Some(allow) = &self.allow else { return false };
        let host = uri.host().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        literal.is_ok_and(|address| !allow.permits(host, address))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = ConnectFuture<Self::Response>;

    fn poll_ready(&mut self, ctx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(ctx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if self.is_refused(&uri) {
            return Box::pin(std::future::ready(Err(AddressRefused.into())));
        }
        let opening = self.tcp.call(uri);
        Box::pin(async move { Ok(opening.await?) })
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = ConnectFuture<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let host: Box<str> = name.as_str().into();
        let allow = self.allow.clone();
        let found = self.lookup.find(name);
        Box::pin(async move {
            let addresses = found.await?;
            // A forbidden address among allowed ones fails the lookup: it is a sign of an attack.
            let is_refused =
                |allow: &Arc<AllowList>| addresses.iter().any(|address| !allow.permits(&host, address.ip()));
            if allow.as_ref().is_some_and(is_refused) {
                return Err(AddressRefused.into());
            }
            Ok(addresses.into_iter())
        })
    }
}

impl NameLookup {
    fn find(&mut self, name: Name) -> ConnectFuture<Vec<SocketAddr>> {
        match self {
            Self::System(resolver) => {
                let found = resolver.call(name);
                Box::pin(async move { Ok(found.await?.collect()) })
            }
            #[cfg(test)]
            Self::Scripted(script) => {
                let found = script(name.as_str()).into_iter().map(|address| SocketAddr::new(address, 0));
                Box::pin(std::future::ready(Ok(found.collect())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::TcpListener;

    use super::*;
    use crate::allow_list::AllowedAddress;

    fn allow(entries: &[&str]) -> Arc<AllowList> {
        let entries = entries.iter().map(|text| AllowedAddress::parse(text).expect("an entry"));
        Arc::new(AllowList::of(entries))
    }

    fn scripted(allow: Arc<AllowList>, script: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Connector {
        Connector::with(NameLookup::Scripted(Arc::new(script)), Some(allow))
    }

    async fn open(connector: &mut Connector, uri: &str) -> Result<SocketAddr, BoxError> {
        let stream = connector.call(uri.parse().expect("a URI")).await?;
        Ok(stream.inner().peer_addr()?)
    }

    #[tokio::test]
    async fn a_name_that_changes_its_mind_is_not_asked_again() {
        let right = TcpListener::bind("127.0.0.2:0").await.expect("a port");
        let port = right.local_addr().expect("bound").port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let mut connector = scripted(allow(&["127.0.0.2"]), move |_| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            vec![if first { [127, 0, 0, 2].into() } else { [127, 0, 0, 1].into() }]
        });
        let peer = open(&mut connector, &format!("http://rebind.example:{port}/")).await.expect("connected");
        assert_eq!((peer.ip().to_string().as_str(), asked.load(Ordering::SeqCst)), ("127.0.0.2", 1));
        let again = open(&mut connector, &format!("http://rebind.example:{port}/")).await;
        assert!(again.is_err_and(|error| is_refused(&*error)), "the second answer is judged, too");
    }

    #[tokio::test]
    async fn one_wrong_address_among_right_ones_is_enough() {
        let listener = TcpListener::bind("127.0.0.2:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let both = |_: &str| vec![[127, 0, 0, 2].into(), [10, 0, 0, 1].into()];
        let mut connector = scripted(allow(&["127.0.0.2"]), both);
        let refused = open(&mut connector, &format!("http://mixed.example:{port}/")).await;
        assert!(refused.is_err_and(|error| is_refused(&*error)));
        let mut named = scripted(allow(&["mixed.example"]), both);
        assert!(open(&mut named, &format!("http://mixed.example:{port}/")).await.is_ok(), "a name counts whole");
    }

    /// Spellings that are no IP literals to us go to the system resolver and are checked as it resolves them.
    #[tokio::test]
    async fn no_spelling_of_an_inner_address_gets_through() {
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "017700000001",
            "0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "169.254.169.254",
            "2852039166",
            "[fd00:ec2::254]",
            "10.1.2.3",
            "192.168.0.1",
            "100.64.0.1",
        ] {
            let mut guarded = Connector::new(Some(allow(&[])));
            let error = open(&mut guarded, &format!("http://{host}:9/")).await.expect_err(host);
            assert!(is_refused(&*error), "{host}: {error}");
        }
    }

    #[tokio::test]
    async fn who_has_no_guard_goes_anywhere_and_who_is_allowed_too() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let uri = format!("http://{}/", listener.local_addr().expect("bound"));
        assert!(open(&mut Connector::new(None), &uri).await.is_ok());
        assert!(open(&mut Connector::new(Some(allow(&["127.0.0.0/8"]))), &uri).await.is_ok());
        assert!(open(&mut Connector::new(Some(allow(&["10.0.0.0/8"]))), &uri).await.is_err());
    }
}

//! Tests of the pool with servers that close, hang up or never finish.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::read;

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\nhello";

/// Behaviour of a server after it has read a request.
#[derive(Clone, Copy)]
enum ServerBehavior {
    Answer,
    AnswerAndClose,
    /// Begins a response and never finishes it.
    Begin,
    HangUp,
}

struct CountingServer {
    uri: String,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

#[expect(clippy::disallowed_methods, reason = "ends with the test")]
async fn server(then: ServerBehavior) -> CountingServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let uri = format!("http://{}", listener.local_addr().expect("bound"));
    let (connections, heads) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, seen) = (Arc::clone(&connections), Arc::clone(&heads));
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream, then, Arc::clone(&seen)));
        }
    });
    CountingServer { uri, connections, heads, _task: AbortOnDropHandle::new(task) }
}

async fn serve(mut stream: TcpStream, then: ServerBehavior, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = vec![0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut head).await {
        heads.lock().push(String::from_utf8_lossy(&head[..length]).into_owned());
        if matches!(then, ServerBehavior::HangUp) {
            return;
        }
        let answer = if matches!(then, ServerBehavior::Begin) { BEGUN } else { HELLO };
        stream.write_all(answer).await.expect("sent");
        if matches!(then, ServerBehavior::AnswerAndClose) {
            return;
        }
    }
}

impl CountingServer {
    fn request(&self, path: &str) -> Request<RequestBody> {
        Request::get(format!("{}{path}", self.uri)).body(RequestBody::default()).expect("a request")
    }

    fn counts(&self) -> (usize, usize) {
        (self.connections.load(Ordering::SeqCst), self.heads.lock().len())
    }
}

fn pool() -> PlainPool {
    PlainPool::new(Connector::new(None))
}

async fn ask(pool: &PlainPool, server: &CountingServer) -> Bytes {
    let answer = pool.send(server.request("/a?b=c")).await.expect("an answer");
    read(answer.into_body(), 100).await.expect("a body")
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (pool, server) = (pool(), server(ServerBehavior::Answer).await);
    for _ in 0..5 {
        assert_eq!(ask(&pool, &server).await, "hello");
    }
    assert_eq!(server.counts(), (1, 5));
}

#[tokio::test]
async fn one_that_the_server_closed_is_replaced() {
    let (pool, server) = (pool(), server(ServerBehavior::AnswerAndClose).await);
    for _ in 0..20 {
        assert_eq!(ask(&pool, &server).await, "hello");
    }
    assert_eq!(server.counts(), (20, 20));
}

/// Waits until the connection of an abandoned response is ready or closed.
async fn settled(pool: &PlainPool) -> usize {
    let ready = |pool: &PlainPool| {
        let idle = pool.idle.lock();
        let mut all = idle.values().flatten();
        (all.clone().count(), all.all(|(connection, _)| connection.sender.is_ready()))
    };
    for _ in 0..1000 {
        if let (count, true) = ready(pool) {
            return count;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the connection is neither ready nor gone");
}

#[tokio::test]
async fn an_answer_that_nobody_reads_keeps_its_connection() {
    let (pool, server) = (pool(), server(ServerBehavior::Answer).await);
    for _ in 0..2 {
        drop(pool.send(server.request("/")).await.expect("an answer"));
        assert_eq!(settled(&pool).await, 1);
    }
    assert_eq!(server.counts(), (1, 2));
}

#[tokio::test]
async fn one_that_is_left_in_the_middle_does_not() {
    let (pool, server) = (pool(), server(ServerBehavior::Begin).await);
    for _ in 0..2 {
        drop(pool.send(server.request("/")).await.expect("an answer"));
        assert_eq!(settled(&pool).await, 0);
    }
    assert_eq!(server.counts(), (2, 2));
}

#[tokio::test]
async fn what_the_server_has_read_is_never_sent_again() {
    let (pool, server) = (pool(), server(ServerBehavior::HangUp).await);
    let error = pool.send(server.request("/")).await.expect_err("no answer");
    assert!(matches!(error, SendError::Transfer(_)), "{error}");
    assert_eq!(server.counts(), (1, 1));
}

#[tokio::test]
async fn as_many_are_open_as_are_used_at_once() {
    let (pool, server) = (pool(), server(ServerBehavior::Answer).await);
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(pool.send(server.request("/")).await.expect("an answer"));
    }
    for answer in answers {
        read(answer.into_body(), 100).await.expect("a body");
    }
    for _ in 0..3 {
        ask(&pool, &server).await;
    }
    assert_eq!(server.counts(), (3, 6));
}

#[tokio::test]
async fn what_is_not_used_for_long_is_closed() {
    let (pool, server) = (pool(), server(ServerBehavior::Answer).await);
    ask(&pool, &server).await;
    assert_eq!(pool.idle.lock().len(), 1);
    tokio::time::pause();
    for _ in 0..3 {
        tokio::time::advance(IDLE_TIMEOUT).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.idle.lock().len(), 0);
}

#[tokio::test]
async fn the_server_reads_its_name_and_the_path() {
    let (pool, server) = (pool(), server(ServerBehavior::Answer).await);
    ask(&pool, &server).await;
    let head = server.heads.lock()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /a?b=c http/1.1\r\n"), "{head}");
    let host = format!("\r\nhost: {}\r\n", server.uri.trim_start_matches("http://"));
    assert_eq!(head.matches(&host).count(), 1, "{head}");
}

#[track_caller]
fn check_host(uri: &str, expected: &str) {
    let uri: Uri = uri.parse().expect("a URI");
    let mut request = Request::new(RequestBody::default());
    prepare(&mut request, &uri, uri.authority().expect("a host")).expect("prepared");
    assert_eq!(request.headers()[HOST], expected, "{uri}");
}

#[test]
fn a_host_is_named_as_servers_expect_it() {
    check_host("http://example.com/x", "example.com");
    check_host("http://example.com:80/x", "example.com");
    check_host("http://example.com:8080/x", "example.com:8080");
    check_host("http://user:secret@example.com:8080/x", "example.com:8080");
    check_host("http://user:secret@example.com:80/x", "example.com");
    check_host("http://[::1]:7300/x", "[::1]:7300");
}

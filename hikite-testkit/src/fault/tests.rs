//! Each fault of the proxy has its documented effect on a connection.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

use super::{FaultProxy, ProxyFault};

const SOON: Duration = Duration::from_secs(5);
const A_WHILE: Duration = Duration::from_millis(100);

/// Starts a proxy in front of an echo server.
async fn proxied_echo() -> FaultProxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("bound");
    let proxy = FaultProxy::start(target).await.expect("a port");
    proxy.shared.tasks.spawn({
        let tasks = proxy.shared.tasks.clone();
        let shutdown = proxy.shared.shutdown.clone();
        async move {
            while let Some(Ok((mut stream, _))) = shutdown.run_until_cancelled(listener.accept()).await {
                tasks.spawn(async move {
                    let (mut input, mut output) = stream.split();
                    let _ = tokio::io::copy(&mut input, &mut output).await;
                });
            }
        }
    });
    proxy
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.expect("accepted")
}

/// Reads until the connection ends.
async fn drain(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    // A reset after the cut counts as an end.
    let _ = timeout(SOON, stream.read_to_end(&mut all)).await.expect("the connection ends");
    all
}

async fn exchange(stream: &mut TcpStream, text: &[u8]) -> Vec<u8> {
    stream.write_all(text).await.expect("open");
    let mut answer = vec![0; text.len()];
    timeout(SOON, stream.read_exact(&mut answer)).await.expect("in time").expect("open");
    answer
}

#[tokio::test]
async fn without_a_fault_everything_passes_and_ends_are_passed_on() {
    let proxy = proxied_echo().await;
    let mut stream = connect(&proxy).await;
    assert_eq!(exchange(&mut stream, b"hello").await, b"hello");
    stream.shutdown().await.expect("open");
    assert!(drain(&mut stream).await.is_empty());
    assert_eq!(proxy.accepted(), 1);
    proxy.stop().await;
}

#[tokio::test]
async fn an_answer_is_cut_after_so_many_bytes_even_on_an_open_connection() {
    let proxy = proxied_echo().await;
    let mut stream = connect(&proxy).await;
    exchange(&mut stream, b"before").await;
    proxy.set(ProxyFault::cut_answer_after(3)).await;
    stream.write_all(b"hello").await.expect("open");
    assert_eq!(drain(&mut stream).await, b"hel");
}

#[tokio::test]
async fn a_request_is_cut_after_so_many_bytes() {
    let proxy = proxied_echo().await;
    proxy.set(ProxyFault::cut_request_after(2)).await;
    let mut stream = connect(&proxy).await;
    stream.write_all(b"hello").await.expect("open");
    assert!(b"he".starts_with(&drain(&mut stream).await));
}

#[tokio::test]
async fn a_stalled_answer_arrives_when_the_fault_is_lifted() {
    let proxy = proxied_echo().await;
    proxy.set(ProxyFault::stall()).await;
    let mut stream = connect(&proxy).await;
    stream.write_all(b"hello").await.expect("open");
    let mut answer = [0; 5];
    assert!(timeout(A_WHILE, stream.read_exact(&mut answer)).await.is_err());
    proxy.set(ProxyFault::default()).await;
    timeout(SOON, stream.read_exact(&mut answer)).await.expect("in time").expect("open");
    assert_eq!(&answer, b"hello");
}

#[tokio::test]
async fn a_delay_holds_both_directions() {
    let proxy = proxied_echo().await;
    proxy.set(ProxyFault::delay(A_WHILE)).await;
    let mut stream = connect(&proxy).await;
    let begin = Instant::now();
    exchange(&mut stream, b"hello").await;
    assert!(begin.elapsed() >= A_WHILE * 2);
}

#[tokio::test]
async fn refused_connections_do_not_disturb_open_ones_and_the_port_comes_back() {
    let proxy = proxied_echo().await;
    let mut stream = connect(&proxy).await;
    exchange(&mut stream, b"before").await;
    proxy.set(ProxyFault::refuse()).await;
    let refused = TcpStream::connect(proxy.address()).await.expect_err("refused");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(exchange(&mut stream, b"still here").await, b"still here");
    proxy.set(ProxyFault::default()).await;
    assert_eq!(exchange(&mut connect(&proxy).await, b"again").await, b"again");
}

#[tokio::test]
async fn a_cut_closes_open_connections_and_spares_later_ones() {
    let proxy = proxied_echo().await;
    let mut stream = connect(&proxy).await;
    exchange(&mut stream, b"before").await;
    proxy.cut();
    assert!(drain(&mut stream).await.is_empty());
    assert_eq!(exchange(&mut connect(&proxy).await, b"after").await, b"after");
}

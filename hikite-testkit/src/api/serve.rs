//! Connection handling of the mock service.

use std::{convert::Infallible, io, sync::Arc, sync::atomic::Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::{MockApiState, MockResponse, RecordedRequest, response::ResponseCut};

type MockBody = BoxBody<Bytes, io::Error>;

pub(super) async fn accept(shared: Arc<MockApiState>, listener: TcpListener) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.shutdown.cancelled() => return,
        };
        if let Ok((stream, _)) = accepted {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            shared.tasks.spawn(connection(Arc::clone(&shared), stream));
        }
    }
}

async fn connection(shared: Arc<MockApiState>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| respond(Arc::clone(&shared), request));
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client that disconnects midway is not an error here.
        _ = connection => {}
        () = shared.shutdown.cancelled() => {}
    }
}

async fn respond(shared: Arc<MockApiState>, request: Request<Incoming>) -> io::Result<Response<MockBody>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let answer = shared.take(RecordedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body,
    });
    tokio::time::sleep(answer.delay).await;
    if answer.cut == Some(ResponseCut::BeforeHeaders) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    if answer.cut.is_some() {
        response = response.header("content-length", answer.body.len());
    }
    response.body(body_of(&answer)).map_err(io::Error::other)
}

fn body_of(answer: &MockResponse) -> MockBody {
    let Some(ResponseCut::AfterBytes(bytes)) = answer.cut else {
        return Full::new(answer.body.clone()).map_err(|never: Infallible| match never {}).boxed();
    };
    let first = answer.body.slice(..bytes.min(answer.body.len()));
    let frames = [Ok(Frame::data(first)), Err(io::ErrorKind::ConnectionReset.into())];
    BodyExt::boxed(StreamBody::new(stream::iter(frames)))
}

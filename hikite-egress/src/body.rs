//! Response body that returns its connection to the pool when dropped. If it was not read to the end, the rest is
//! drained or the connection is closed before anyone can reuse it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};

use crate::pool::PooledConnection;

#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    connection: Option<PooledConnection>,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, connection: Option<PooledConnection>) -> Self {
        Self { incoming, connection }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.release();
        }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.incoming).poll_frame(ctx)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

//! Reads the body of a request within its limits.

use axum::body::Body;
use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use http_body_util::{BodyExt, Limited};

use crate::app::App;

pub(crate) async fn read(app: &App, body: Body) -> Result<Bytes, Error> {
    let limit = app.limits.body_bytes;
    let too_large = || {
        Error::new(ErrorKind::PayloadTooLarge, format!("The body is larger than {limit} bytes."))
            .hint("Send less, or raise `limits.body_bytes`.")
    };
    // A declared length over the limit is refused without reading the body.
    if usize::try_from(http_body::Body::size_hint(&body).lower()).is_ok_and(|announced| announced > limit) {
        return Err(too_large());
    }
    let reading = Limited::new(body, limit).collect();
    match tokio::time::timeout(app.limits.body_timeout, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Error::new(ErrorKind::Validation, "The body could not be read.")),
        Err(_) => Err(Error::new(ErrorKind::Timeout, "The body did not arrive in time.")),
    }
}

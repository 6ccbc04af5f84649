//! Tool of one HTTP request. Its definition is parsed once; a call only fills in the values.

use std::fmt;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::source::{BoxFuture, CallContext, CallOrigin, ToolHandler};
use hikite_core::violation::Violation;
use hikite_egress::{EgressClient, RequestBody};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method, Request};

use crate::body::{BodyEncoding, BodyTemplate};
use crate::definition::HttpDefinition;
use crate::response;

pub struct HttpTool {
    form: HttpDefinition,
    client: EgressClient,
    answer_bytes: usize,
    /// Fixed values of every request that may be credentials. No message repeats them.
    secrets: Vec<Box<str>>,
}

impl HttpTool {
    /// Parses the `http` member of a registration against the schema of the tool's arguments. Returns all violations,
    /// with pointers that start with `/http`.
    pub fn read(http: &Raw, schema: &Raw, client: EgressClient, limits: &Limits) -> Result<Self, Vec<Violation>> {
        let mut form = HttpDefinition::read(http, schema)?;
        if matches!(form.body, Some(BodyTemplate { encoding: BodyEncoding::Json, .. })) {
            form.headers.set_default(CONTENT_TYPE, "application/json");
        }
        let mut secrets: Vec<Box<str>> = form.headers.secrets().to_vec();
        // The token of `Bearer x` is secret too.
        let bare = form.headers.secrets().iter().filter_map(|value| Some(value.rsplit_once(' ')?.1.into()));
        secrets.extend(bare.collect::<Vec<_>>());
        secrets.extend(form.address.fixed_values().map(Into::into));
        secrets.push(form.address.host().into());
        Ok(Self { form, client, answer_bytes: limits.answer_bytes, secrets })
    }

    fn request(&self, arguments: &Object, origin: &CallOrigin) -> Result<Request<RequestBody>, Error> {
        let form = &self.form;
        let uri = form.address.fill(arguments, form.query_rest.as_ref())?;
        let mut headers = form.headers.fill(arguments)?;
        let body = form.body.as_ref().and_then(|body| body.fill(arguments));
        if body.is_none() && matches!(form.method, Method::POST | Method::PUT | Method::PATCH) {
            // Some services refuse a request without a body and without `RequestBody-Length` (RFC 9110, 8.6).
            headers.remove(CONTENT_TYPE);
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        trace(&mut headers, origin);
        let mut request = Request::new(RequestBody::new(body.unwrap_or_default()));
        *request.method_mut() = form.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }

    async fn send(&self, request: Request<RequestBody>) -> Result<Raw, Error> {
        let answer = self.client.send(request).await.map_err(|error| response::transport_error(&error))?;
        let form = &self.form;
        response::value(&form.method, answer, form.pick.as_ref(), self.answer_bytes, &self.secrets).await
    }
}

impl ToolHandler for HttpTool {
    fn run(&self, arguments: Object, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let request = self.request(&arguments, &context.origin);
        Box::pin(async move { self.send(request?).await })
    }
}

impl fmt::Debug for HttpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTool").field("method", &self.form.method).finish_non_exhaustive()
    }
}

/// Propagates the trace context to the service, unless the definition sets it.
fn trace(headers: &mut HeaderMap, origin: &CallOrigin) {
    let parts = [("traceparent", &origin.traceparent), ("tracestate", &origin.tracestate)];
    for (name, value) in parts {
        let value = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok());
        if let Some(value) = value {
            headers.entry(HeaderName::from_static(name)).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests;

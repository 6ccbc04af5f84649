//! Requests of the stateless revision: each carries the client's identity and capabilities in `_meta`, and over HTTP
//! repeats its method and name in headers.

use hikite_core::caller::ClientCapabilities;
use hikite_core::json::{Object, Raw};
use hikite_core::listing::SKILLS;
use hikite_core::log_level::LogLevel;
use hikite_core::source::{CallContext, CallOrigin};
use hikite_wire::header;
use hikite_wire::stateless::{self, TASKS};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::UpstreamError;
use crate::http::REVISION;
use crate::outbound::Outbound;
use crate::trace_context;

use super::{Connection, ConnectionPurpose};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Client capabilities and mirrored headers of one stateless request.
#[derive(Debug, Default)]
pub(crate) struct StatelessMeta {
    pub(crate) client_capabilities: ClientCapabilities,
    /// Arguments that the tool requires as headers.
    pub(crate) mirrored_headers: HeaderMap,
}

impl StatelessMeta {
    /// Returns the session's capabilities. The tasks extension is declared if `tasks` is set, whatever the session
    /// supports.
    pub(crate) fn for_call(context: &CallContext, tasks: bool) -> Self {
        let mut client_capabilities = context.session.client_capabilities.clone();
        if tasks != client_capabilities.has_extension(TASKS) {
            let mut extensions = client_capabilities.extensions.as_ref().and_then(Raw::object).unwrap_or_default();
            if tasks {
                extensions.set(TASKS, Raw::empty_object());
            } else {
                extensions.remove(TASKS);
            }
            client_capabilities.extensions = (!extensions.is_empty()).then(|| extensions.raw());
        }
        Self { client_capabilities, mirrored_headers: HeaderMap::new() }
    }

    /// Declares all capabilities: a server's lists may depend on them.
    pub(crate) fn for_lists() -> Self {
        let extensions = Object::default().with(TASKS, Raw::empty_object()).with(SKILLS, Raw::empty_object()).raw();
        let client_capabilities = ClientCapabilities { extensions: Some(extensions), ..ClientCapabilities::all() };
        Self { client_capabilities, mirrored_headers: HeaderMap::new() }
    }

    /// Declares the capabilities of a plain request.
    pub(crate) fn for_request(connection: &Connection, context: Option<&CallContext>) -> Self {
        match (context, &connection.purpose) {
            (Some(context), _) => Self::for_call(context, false),
            (None, ConnectionPurpose::Lists) => Self::for_lists(),
            (None, _) => Self::default(),
        }
    }

    /// Declares the capabilities of the handshake.
    pub(crate) fn for_handshake(connection: &Connection) -> Self {
        match connection.purpose {
            ConnectionPurpose::Lists => Self::for_lists(),
            _ => Self { client_capabilities: connection.declared_capabilities(), mirrored_headers: HeaderMap::new() },
        }
    }

    /// Adds one extension.
    pub(crate) fn with_extension(mut self, extension: &str) -> Self {
        let extensions = self.client_capabilities.extensions.as_ref().and_then(Raw::object).unwrap_or_default();
        self.client_capabilities.extensions = Some(extensions.with(extension, Raw::empty_object()).raw());
        self
    }
}

impl Connection {
    /// Sends one stateless request and waits for its response. Dropping the future cancels the request.
    pub(crate) async fn request_stateless(
        &self,
        method: &str,
        params: Object,
        context: Option<CallContext>,
        request_meta: StatelessMeta,
    ) -> Result<Raw, UpstreamError> {
        let level = context.as_ref().and_then(|context| self.levels.of(context.session.id));
        let for_a_call = context.is_some();
        let pending_request = self.pending_request(context)?;
        let token = for_a_call.then_some(pending_request.id);
        let (params, routing) = self.prepare(method, params, request_meta, level, (token, &pending_request.origin));
        self.exchange(pending_request, method, Some(params), routing).await
    }

    /// Adds `_meta` to the params and returns them with the routing headers, which exist over HTTP only.
    pub(crate) fn prepare(
        &self,
        method: &str,
        mut params: Object,
        request_meta: StatelessMeta,
        level: Option<LogLevel>,
        (token, origin): (Option<u64>, &CallOrigin),
    ) -> (Object, Option<HeaderMap>) {
        let mut meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
        if let Some(token) = token {
            meta.set("progressToken", Raw::of(&token));
        }
        let meta = trace_context::into_meta(meta, origin);
        params.set("_meta", stateless::claim(meta, &request_meta.client_capabilities, level));
        let http = self.outbound().is_some_and(Outbound::is_http);
        let routing = http.then(|| routing(method, &params, request_meta.mirrored_headers));
        (params, routing)
    }
}

/// Builds the headers that repeat the method and the name of a request.
fn routing(method: &str, params: &Object, mut headers: HeaderMap) -> HeaderMap {
    headers.insert(REVISION, HeaderValue::from_static(stateless::REVISION));
    if let Ok(method) = HeaderValue::from_str(method) {
        headers.insert(METHOD, method);
    }
    let name = header::named_member(method).and_then(|member| params.text(member));
    if let Some(name) = name
        && let Ok(name) = HeaderValue::from_str(&header::encode(&name))
    {
        headers.insert(NAME, name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_the_method_and_the_name() {
        let params = Object::default().with("name", "résumé");
        let headers = routing("tools/call", &params, HeaderMap::new());
        assert_eq!(headers[REVISION], "2026-07-28");
        assert_eq!(headers[METHOD], "tools/call");
        assert_eq!(headers[NAME], "=?base64?csOpc3Vtw6k=?=");
        assert!(!routing("tools/list", &params, HeaderMap::new()).contains_key(NAME));
    }
}

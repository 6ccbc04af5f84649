//! Requests of the stateless revision: each carries the client's identity and capabilities in `_meta`, and over HTTP
//! repeats its method and name in headers.

use hikite_core::caller::Abilities;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::level::Level;
use hikite_core::listing::SKILLS;
use hikite_core::source::{CallContext, Origin};
use hikite_wire::header;
use hikite_wire::stateless::{self, TASKS};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::carry;
use crate::connection::{Connection, Purpose};
use crate::http::REVISION;
use crate::outbound::Outbound;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Client capabilities and mirrored headers of one stateless request.
#[derive(Debug, Default)]
pub(crate) struct Claiming {
    pub(crate) abilities: Abilities,
    /// Arguments that the tool requires as headers.
    pub(crate) mirrored: HeaderMap,
}

impl Claiming {
    /// Returns the session's capabilities. The tasks extension is declared if `tasks` is set, whatever the session
    /// supports.
    pub(crate) fn for_call(context: &CallContext, tasks: bool) -> Self {
        let mut abilities = context.session.abilities.clone();
        if tasks != abilities.knows(TASKS) {
            let mut extensions = abilities.extensions.as_ref().and_then(Raw::object).unwrap_or_default();
            if tasks {
                extensions.set(TASKS, Raw::empty_object());
            } else {
                extensions.remove(TASKS);
            }
            abilities.extensions = (!extensions.is_empty()).then(|| extensions.raw());
        }
        Self { abilities, mirrored: HeaderMap::new() }
    }

    /// Declares all capabilities: a server's lists may depend on them.
    pub(crate) fn for_lists() -> Self {
        let extensions =
            Object::default().with(TASKS, Raw::empty_object()).with(SKILLS, Raw::empty_object()).raw();
        let abilities = Abilities { extensions: Some(extensions), ..Abilities::all() };
        Self { abilities, mirrored: HeaderMap::new() }
    }

    /// Adds one extension.
    pub(crate) fn knowing(mut self, extension: &str) -> Self {
        let extensions = self.abilities.extensions.as_ref().and_then(Raw::object).unwrap_or_default();
        self.abilities.extensions = Some(extensions.with(extension, Raw::empty_object()).raw());
        self
    }
}

impl Connection {
    /// Returns the capabilities of a plain request.
    pub(crate) fn claiming(&self, context: Option<&CallContext>) -> Claiming {
        match (context, &self.purpose) {
            (Some(context), _) => Claiming::for_call(context, false),
            (None, Purpose::Lists) => Claiming::for_lists(),
            (None, _) => Claiming::default(),
        }
    }

    /// Returns the capabilities of the handshake.
    pub(crate) fn greeting_claim(&self) -> Claiming {
        match self.purpose {
            Purpose::Lists => Claiming::for_lists(),
            _ => Claiming { abilities: self.own_abilities(), mirrored: HeaderMap::new() },
        }
    }

    /// Sends one stateless request and waits for its response. Dropping the future cancels the request.
    pub(crate) async fn request_stateless(
        &self,
        method: &str,
        params: Object,
        context: Option<CallContext>,
        claiming: Claiming,
    ) -> Result<Raw, Error> {
        let level = context.as_ref().and_then(|context| self.levels.of(context.session.id));
        let for_a_call = context.is_some();
        let ticket = self.ticket(context)?;
        let token = for_a_call.then_some(ticket.id);
        let (params, routing) = self.dress(method, params, claiming, level, (token, &ticket.origin));
        self.exchange(ticket, method, Some(params), routing).await
    }

    /// Adds `_meta` to the params and returns them with the routing headers, which exist over HTTP only.
    pub(crate) fn dress(
        &self,
        method: &str,
        mut params: Object,
        claiming: Claiming,
        level: Option<Level>,
        (token, origin): (Option<u64>, &Origin),
    ) -> (Object, Option<HeaderMap>) {
        let mut meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
        if let Some(token) = token {
            meta.set("progressToken", Raw::of(&token));
        }
        let meta = carry::into_meta(meta, origin);
        params.set("_meta", stateless::claim(meta, &claiming.abilities, level));
        let http = self.outbound().is_some_and(Outbound::is_http);
        let routing = http.then(|| routing(method, &params, claiming.mirrored));
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

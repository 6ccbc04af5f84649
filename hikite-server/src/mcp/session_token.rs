//! The content of a session id: the negotiated revision, and in a cluster the node where the session began and the data
//! that another node needs to reopen it. Sealed, and bound to its caller.

use hikite_core::caller::{Caller, ClientCapabilities, Scopes};
use hikite_core::json::{Object, Raw};
use hikite_core::signer::HmacSigner;
use hikite_gateway::{Surface, Surfaces, now_ms};
use hikite_wire::handshake::InitializeRequest;
use hikite_wire::revision::Revision;

use crate::mcp::session::ClientSession;

/// Purpose of the seal.
const PURPOSE: &[u8] = b"session";
/// Maximum length of the client data, because the id is sent in a header of every request; longer data is left out.
const CLIENT_DATA_BYTES_MAX: usize = 2048;
/// Maximum age of an id that another node reopens; ended sessions are not remembered for longer.
const AGE_MAX_MS: u64 = 30 * 24 * 3600 * 1000;

#[derive(Debug)]
pub(crate) struct SessionToken {
    pub(crate) number: String,
    /// Data for reopening the session, only in a cluster.
    pub(crate) origin: Option<SessionOrigin>,
    revision: Revision,
}

/// The start of a session: where, when and with which parameters.
#[derive(Debug)]
pub(crate) struct SessionOrigin {
    pub(crate) home: String,
    at: u64,
    surfaces: Surfaces,
    /// Includes the project, if the session has one.
    caller: Caller,
    client: Object,
    capabilities: Object,
}

impl SessionToken {
    pub(crate) fn of(session: &ClientSession, number: &str, home: Option<&str>) -> Self {
        let origin = home.map(|home| SessionOrigin {
            home: home.to_owned(),
            at: now_ms(),
            surfaces: session.surfaces,
            caller: session.core.caller.clone(),
            client: session.client.object().unwrap_or_default(),
            capabilities: session.core.client_capabilities.capabilities(),
        });
        Self { number: number.to_owned(), origin, revision: session.revision }
    }

    pub(crate) fn sealed(&self, seal: &HmacSigner, caller: &Caller) -> String {
        let mut payload = format!("{} {}", self.revision, self.number);
        if let Some(origin) = &self.origin {
            let scopes: Vec<&str> = origin.caller.scopes.names().collect();
            let client_data = origin.client_data();
            payload = format!(
                "{payload} {} {} .{} {} {client_data}",
                origin.home,
                origin.at,
                scopes.join(","),
                origin.surfaces.names().join(",")
            );
        }
        seal.put(payload.as_bytes(), &seal_context(caller))
    }

    /// Opens a sealed id. A session without a project is also valid for requests that name one.
    pub(crate) fn read(seal: &HmacSigner, id: &str, caller: &Caller) -> Option<Self> {
        let outside = Caller { project: None, ..caller.clone() };
        [caller, &outside].into_iter().find_map(|owner| {
            let payload = String::from_utf8(seal.open(id, &seal_context(owner))?).ok()?;
            Self::parse(&payload, owner)
        })
    }

    fn parse(payload: &str, owner: &Caller) -> Option<Self> {
        let mut words = payload.splitn(7, ' ');
        let (revision, number) = (Revision::parse(words.next()?)?, words.next()?.to_owned());
        let origin = words.next().and_then(|home| {
            let at = words.next()?.parse().ok()?;
            let scopes = words.next()?.strip_prefix('.')?.split(',').filter_map(Scopes::parse);
            let scopes = scopes.fold(Scopes::NONE, Scopes::with);
            let surfaces = words.next()?.split(',').filter_map(Surface::parse);
            let surfaces = Surfaces::of(surfaces);
            let client_data = Raw::parse(words.next()?.to_owned()).ok()?.object()?;
            let part = |name: &str| client_data.get(name).and_then(Raw::object).unwrap_or_default();
            Some(SessionOrigin {
                home: home.to_owned(),
                at,
                surfaces,
                caller: Caller { scopes, ..owner.clone() },
                client: part("client"),
                capabilities: part("capabilities"),
            })
        });
        Some(Self { number, origin, revision })
    }

    /// Returns the parameters to reopen the session with, unless the id is too old.
    pub(crate) fn reopen_parameters(&self) -> Option<(Caller, Surfaces, InitializeRequest)> {
        let origin = self.origin.as_ref()?;
        if now_ms().saturating_sub(origin.at) > AGE_MAX_MS {
            return None;
        }
        let hello = InitializeRequest {
            revision: self.revision,
            client_capabilities: ClientCapabilities::read(&origin.capabilities),
            client: origin.client.clone(),
        };
        Some((origin.caller.clone(), origin.surfaces, hello))
    }
}

impl SessionOrigin {
    /// Serialises the client info and capabilities, as far as the limit allows.
    fn client_data(&self) -> String {
        let client_data = |client: &Object, capabilities: &Object| {
            let both = Object::default().with("client", client.clone());
            both.with("capabilities", capabilities.clone()).raw().as_str().into_owned()
        };
        let mut client = Object::default();
        for name in ["name", "version"] {
            if let Some(value) = self.client.get(name) {
                client.set(name, value.clone());
            }
        }
        let mut capabilities = self.capabilities.clone();
        let whole = client_data(&client, &capabilities);
        if whole.len() <= CLIENT_DATA_BYTES_MAX {
            return whole;
        }
        capabilities.remove("extensions");
        let most = client_data(&Object::default(), &capabilities);
        if most.len() <= CLIENT_DATA_BYTES_MAX { most } else { client_data(&Object::default(), &Object::default()) }
    }
}

/// Returns the data that the seal is bound to: subject, project and token.
fn seal_context(caller: &Caller) -> [&[u8]; 4] {
    let [subject, project] = caller.parts();
    [PURPOSE, subject, project, caller.token.as_deref().unwrap_or_default().as_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_app::app;

    fn hello(client: &str) -> InitializeRequest {
        let text = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"elicitation":{{"form":{{}}}},"extensions":{{"x":{{}}}}}},
            "clientInfo":{{"name":"{client}","version":"1","title":"a client"}}}}"#
        );
        InitializeRequest::read(Some(&Raw::parse(text).expect("valid"))).expect("a hello")
    }

    #[tokio::test]
    async fn another_node_knows_from_the_id_what_it_needs() {
        let (app, seal) = (app(), HmacSigner::new([7; 32]));
        let alice = Caller { token: Some("tok_1".into()), scopes: Scopes::READ, ..Caller::named("alice") };
        for owner in [Caller::owner(), alice.clone(), alice.within("仕事".into())] {
            let surfaces = Surfaces::of([Surface::Modules, Surface::Search]);
            let session = ClientSession::open(&app, owner.clone(), surfaces, hello("有名な client"));
            let id = SessionToken::of(&session, "n1", Some("a")).sealed(&seal, &owner);
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
            let name = SessionToken::read(&seal, &id, &owner).expect("ours");
            assert_eq!((&*name.number, &*name.origin.as_ref().expect("told").home), ("n1", "a"));
            let (caller, reopen_parameters, hello) = name.reopen_parameters().expect("young");
            assert_eq!((caller, reopen_parameters, hello.revision), (owner.clone(), surfaces, session.revision));
            assert_eq!(hello.client.text("name").as_deref(), Some("有名な client"));
            assert_eq!(hello.client_capabilities, session.core.client_capabilities);
            for stranger in [
                Caller::named("stranger"),
                Caller { token: Some("tok_2".into()), ..owner.clone() },
                Caller { project: Some("other".into()), subject: "bob".into(), ..owner.clone() },
            ] {
                assert!(SessionToken::read(&seal, &id, &stranger).is_none(), "{stranger:?}");
            }
            assert!(SessionToken::read(&HmacSigner::new([8; 32]), &id, &owner).is_none());
            let inside = owner.within("home".into());
            let read = SessionToken::read(&seal, &id, &inside).and_then(|name| name.reopen_parameters());
            let expected = owner.project.is_none().then(|| owner.clone());
            assert_eq!(read.map(|(caller, ..)| caller), expected, "a request, in a project");
        }
    }

    #[tokio::test]
    async fn an_id_is_short_whatever_a_client_says_and_does_not_last_for_ever() {
        let (app, seal, owner) = (app(), HmacSigner::new([7; 32]), Caller::owner());
        let session =
            ClientSession::open(&app, owner.clone(), Surfaces::of([Surface::Direct]), hello(&"x".repeat(5000)));
        let mut name = SessionToken::of(&session, "n1", Some("a"));
        assert!(name.sealed(&seal, &owner).len() < 4096);
        name.origin.as_mut().expect("told").at -= AGE_MAX_MS + 1000;
        let old = SessionToken::read(&seal, &name.sealed(&seal, &owner), &owner).expect("ours");
        assert!(old.reopen_parameters().is_none());
        let alone = SessionToken::of(&session, "n1", None).sealed(&seal, &owner);
        assert!(SessionToken::read(&seal, &alone, &owner).is_some_and(|name| name.reopen_parameters().is_none()));
    }
}

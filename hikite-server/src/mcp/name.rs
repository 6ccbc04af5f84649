//! The content of a session id: the negotiated revision, and in a cluster the node where the session began and the data
//! that another node needs to reopen it. Sealed, and bound to its caller.

use hikite_core::caller::{Abilities, Caller, Scopes};
use hikite_core::json::{Object, Raw};
use hikite_core::seal::Seal;
use hikite_gateway::{Surface, Surfaces, now_ms};
use hikite_wire::handshake::Hello;
use hikite_wire::revision::Revision;

use crate::mcp::session::Session;

/// Purpose of the seal.
const PURPOSE: &[u8] = b"session";
/// Maximum length of the client data, because the id is sent in a header of every request; longer data is left out.
const LONGEST: usize = 2048;
/// Maximum age of an id that another node reopens; ended sessions are not remembered for longer.
const OLDEST_MS: u64 = 30 * 24 * 3600 * 1000;

#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) number: String,
    /// Data for reopening the session, only in a cluster.
    pub(crate) began: Option<Began>,
    revision: Revision,
}

/// The start of a session: where, when and with which parameters.
#[derive(Debug)]
pub(crate) struct Began {
    pub(crate) home: String,
    at: u64,
    surfaces: Surfaces,
    /// Includes the project, if the session has one.
    caller: Caller,
    client: Object,
    capabilities: Object,
}

impl Name {
    pub(crate) fn of(session: &Session, number: &str, home: Option<&str>) -> Self {
        let began = home.map(|home| Began {
            home: home.to_owned(),
            at: now_ms(),
            surfaces: session.surfaces,
            caller: session.core.caller.clone(),
            client: session.client.object().unwrap_or_default(),
            capabilities: session.core.abilities.capabilities(),
        });
        Self { number: number.to_owned(), began, revision: session.revision }
    }

    pub(crate) fn sealed(&self, seal: &Seal, caller: &Caller) -> String {
        let mut payload = format!("{} {}", self.revision, self.number);
        if let Some(began) = &self.began {
            let scopes: Vec<&str> = began.caller.scopes.names().collect();
            let told = began.told();
            payload = format!(
                "{payload} {} {} .{} {} {told}",
                began.home,
                began.at,
                scopes.join(","),
                began.surfaces.names().join(",")
            );
        }
        seal.put(payload.as_bytes(), &bound(caller))
    }

    /// Opens a sealed id. A session without a project is also valid for requests that name one.
    pub(crate) fn read(seal: &Seal, id: &str, caller: &Caller) -> Option<Self> {
        let outside = Caller { project: None, ..caller.clone() };
        [caller, &outside].into_iter().find_map(|owner| {
            let payload = String::from_utf8(seal.open(id, &bound(owner))?).ok()?;
            Self::parse(&payload, owner)
        })
    }

    fn parse(payload: &str, owner: &Caller) -> Option<Self> {
        let mut words = payload.splitn(7, ' ');
        let (revision, number) = (Revision::parse(words.next()?)?, words.next()?.to_owned());
        let began = words.next().and_then(|home| {
            let at = words.next()?.parse().ok()?;
            let scopes = words.next()?.strip_prefix('.')?.split(',').filter_map(Scopes::parse);
            let scopes = scopes.fold(Scopes::NONE, Scopes::with);
            let surfaces = words.next()?.split(',').filter_map(Surface::parse);
            let surfaces = Surfaces::of(surfaces);
            let told = Raw::parse(words.next()?.to_owned()).ok()?.object()?;
            let part = |name: &str| told.get(name).and_then(Raw::object).unwrap_or_default();
            Some(Began {
                home: home.to_owned(),
                at,
                surfaces,
                caller: Caller { scopes, ..owner.clone() },
                client: part("client"),
                capabilities: part("capabilities"),
            })
        });
        Some(Self { number, began, revision })
    }

    /// Returns the parameters to reopen the session with, unless the id is too old.
    pub(crate) fn again(&self) -> Option<(Caller, Surfaces, Hello)> {
        let began = self.began.as_ref()?;
        if now_ms().saturating_sub(began.at) > OLDEST_MS {
            return None;
        }
        let hello = Hello {
            revision: self.revision,
            abilities: Abilities::read(&began.capabilities),
            client: began.client.clone(),
        };
        Some((began.caller.clone(), began.surfaces, hello))
    }
}

impl Began {
    /// Serialises the client info and capabilities, as far as the limit allows.
    fn told(&self) -> String {
        let told = |client: &Object, capabilities: &Object| {
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
        let whole = told(&client, &capabilities);
        if whole.len() <= LONGEST {
            return whole;
        }
        capabilities.remove("extensions");
        let most = told(&Object::default(), &capabilities);
        if most.len() <= LONGEST { most } else { told(&Object::default(), &Object::default()) }
    }
}

/// Returns the data that the seal is bound to: subject, project and token.
fn bound(caller: &Caller) -> [&[u8]; 4] {
    let [subject, project] = caller.parts();
    [PURPOSE, subject, project, caller.token.as_deref().unwrap_or_default().as_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::app;

    fn hello(client: &str) -> Hello {
        let text = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"elicitation":{{"form":{{}}}},"extensions":{{"x":{{}}}}}},
            "clientInfo":{{"name":"{client}","version":"1","title":"a client"}}}}"#
        );
        Hello::read(Some(&Raw::parse(text).expect("valid"))).expect("a hello")
    }

    #[tokio::test]
    async fn another_node_knows_from_the_id_what_it_needs() {
        let (app, seal) = (app(), Seal::new([7; 32]));
        let alice = Caller { token: Some("tok_1".into()), scopes: Scopes::READ, ..Caller::named("alice") };
        for owner in [Caller::owner(), alice.clone(), alice.within("仕事".into())] {
            let surfaces = Surfaces::of([Surface::Modules, Surface::Search]);
            let session = Session::open(&app, owner.clone(), surfaces, hello("有名な client"));
            let id = Name::of(&session, "n1", Some("a")).sealed(&seal, &owner);
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
            let name = Name::read(&seal, &id, &owner).expect("ours");
            assert_eq!((&*name.number, &*name.began.as_ref().expect("told").home), ("n1", "a"));
            let (caller, again, hello) = name.again().expect("young");
            assert_eq!((caller, again, hello.revision), (owner.clone(), surfaces, session.revision));
            assert_eq!(hello.client.text("name").as_deref(), Some("有名な client"));
            assert_eq!(hello.abilities, session.core.abilities);
            for stranger in [
                Caller::named("stranger"),
                Caller { token: Some("tok_2".into()), ..owner.clone() },
                Caller { project: Some("other".into()), subject: "bob".into(), ..owner.clone() },
            ] {
                assert!(Name::read(&seal, &id, &stranger).is_none(), "{stranger:?}");
            }
            assert!(Name::read(&Seal::new([8; 32]), &id, &owner).is_none());
            let inside = owner.within("home".into());
            let read = Name::read(&seal, &id, &inside).and_then(|name| name.again());
            let expected = owner.project.is_none().then(|| owner.clone());
            assert_eq!(read.map(|(caller, ..)| caller), expected, "a request, in a project");
        }
    }

    #[tokio::test]
    async fn an_id_is_short_whatever_a_client_says_and_does_not_last_for_ever() {
        let (app, seal, owner) = (app(), Seal::new([7; 32]), Caller::owner());
        let session =
            Session::open(&app, owner.clone(), Surfaces::of([Surface::Direct]), hello(&"x".repeat(5000)));
        let mut name = Name::of(&session, "n1", Some("a"));
        assert!(name.sealed(&seal, &owner).len() < 4096);
        name.began.as_mut().expect("told").at -= OLDEST_MS + 1000;
        let old = Name::read(&seal, &name.sealed(&seal, &owner), &owner).expect("ours");
        assert!(old.again().is_none());
        let alone = Name::of(&session, "n1", None).sealed(&seal, &owner);
        assert!(Name::read(&seal, &alone, &owner).is_some_and(|name| name.again().is_none()));
    }
}

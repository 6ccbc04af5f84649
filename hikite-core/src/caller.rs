//! The caller of a request, its scopes, and the client session that the request belongs to.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::json::{Object, Raw};

/// An authenticated subject. The holder of the local token and the user who runs `hikite stdio` are the owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    pub subject: Arc<str>,
    /// Project whose rules apply; `None` gives access to everything that the subject may see.
    pub project: Option<Arc<str>>,
    pub scopes: Scopes,
    /// Id (not the secret) of the personal token, or of the grant behind the access token.
    pub token: Option<Arc<str>>,
}

/// Subject of the person who runs this installation.
pub const OWNER: &str = "owner";

impl Caller {
    pub fn owner() -> Self {
        Self { scopes: Scopes::ALL, ..Self::named(OWNER) }
    }

    /// Returns a caller with the default scopes and no project.
    pub fn named(subject: impl Into<Arc<str>>) -> Self {
        Self { subject: subject.into(), project: None, scopes: Scopes::DEFAULT, token: None }
    }

    /// Returns `true` if the caller may change shared state: tools, projects, tokens. Always `false` inside a project.
    pub fn is_admin(&self) -> bool {
        self.scopes.contains(Scopes::ADMIN) && self.project.is_none()
    }

    /// Returns the subject and the project, for seals bound to both. The project is empty if there is none.
    pub fn parts(&self) -> [&[u8]; 2] {
        [self.subject.as_bytes(), self.project.as_deref().unwrap_or_default().as_bytes()]
    }

    /// Rejects a caller without the scope, before any lookup, so the error does not reveal what exists.
    pub fn require(&self, scope: Scopes) -> Result<(), Error> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        let (deed, name) = match scope {
            Scopes::READ => ("list tools", "read"),
            Scopes::CALL => ("use tools, resources and prompts", "call"),
            _ => ("do this", "admin"),
        };
        let error = Error::new(ErrorKind::Authorization, format!("You are not allowed to {deed}."))
            .hint(format!("Use a token with the scope `{name}`."));
        Err(Error { insufficient_scope: true, ..error })
    }

    /// Returns this caller inside a project, with its scopes reduced to the default ones.
    #[must_use]
    pub fn within(&self, project: Arc<str>) -> Self {
        let scopes = Scopes(self.scopes.0 & Scopes::DEFAULT.0);
        Self { project: Some(project), scopes, ..self.clone() }
    }

    /// Returns `true` if both authenticated as the same subject with the same token, in whatever project.
    pub fn has_same_credentials(&self, other: &Self) -> bool {
        self.subject == other.subject && self.token == other.token
    }
}

/// Scopes of a caller, independent of what it can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    pub const NONE: Self = Self(0);
    /// List, search and describe.
    pub const READ: Self = Self(1);
    /// Run tools, read resources, get prompts.
    pub const CALL: Self = Self(2);
    pub const ADMIN: Self = Self(4);
    /// Default scopes of a token that names none.
    pub const DEFAULT: Self = Self(3);
    pub const ALL: Self = Self(7);

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the scope with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, scope)| *scope)
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(_, scope)| self.contains(*scope)).map(|(name, _)| name)
    }

    pub const NAMES: [(&'static str, Self); 3] = [("read", Self::READ), ("call", Self::CALL), ("admin", Self::ADMIN)];
}

/// Internal id of a client session; never sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// A client session as the sources see it.
#[derive(Debug)]
pub struct Session {
    pub id: SessionId,
    pub caller: Caller,
    pub client_capabilities: ClientCapabilities,
}

/// MCP extension for calls that continue after their response.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Capabilities that the client declared: server-to-client requests it accepts, and extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientCapabilities {
    pub sampling: Option<Raw>,
    pub elicitation: Option<Raw>,
    pub roots: Option<Raw>,
    pub extensions: Option<Raw>,
}

impl ClientCapabilities {
    /// Reads a `ClientCapabilities` object; members of the wrong type count as absent.
    pub fn read(capabilities: &Object) -> Self {
        let ability = |name: &str| capabilities.get(name).filter(|value| value.is_object()).map(Raw::copied);
        Self {
            sampling: ability("sampling"),
            elicitation: ability("elicitation"),
            roots: ability("roots"),
            extensions: ability("extensions"),
        }
    }

    /// Returns the `ClientCapabilities` object.
    pub fn capabilities(&self) -> Object {
        let all = [
            ("sampling", &self.sampling),
            ("elicitation", &self.elicitation),
            ("roots", &self.roots),
            ("extensions", &self.extensions),
        ];
        let declared = all.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        declared.fold(Object::default(), |object, (name, value)| object.with(name, value))
    }

    /// Returns the total size in bytes; sessions hold the capabilities for their lifetime.
    pub fn bytes(&self) -> usize {
        let all = [&self.sampling, &self.elicitation, &self.roots, &self.extensions];
        all.into_iter().flatten().map(|ability| ability.bytes().len()).sum()
    }

    /// Returns `true` if the client declared this extension.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.extensions.as_ref().and_then(Raw::object).is_some_and(|all| all.get(extension).is_some())
    }

    /// Returns all capabilities a server could use. For listing what a server offers, not for calls.
    pub fn all() -> Self {
        let with = |members: &[&str]| {
            let object = members.iter().fold(Object::default(), |all, name| all.with(name, Raw::empty_object()));
            Some(object.raw())
        };
        let roots = Object::default().with("listChanged", Raw::of(&true)).raw();
        Self {
            sampling: with(&["context", "tools"]),
            elicitation: with(&["form", "url"]),
            roots: Some(roots),
            extensions: None,
        }
    }

    /// Returns `true` if the client accepts any server-to-client request.
    pub fn any(&self) -> bool {
        self.sampling.is_some() || self.elicitation.is_some() || self.roots.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_alone_is_an_admin() {
        assert!(Caller::owner().is_admin());
        for subject in ["", "Owner", "owner ", "owner2", "alice"] {
            assert!(!Caller::named(subject).is_admin(), "{subject:?}");
        }
    }

    #[test]
    fn nobody_administers_from_inside_a_project() {
        let inside = Caller::owner().within("work".into());
        assert!(!inside.is_admin() && inside.require(Scopes::CALL).is_ok());
        assert!(!Caller { project: Some("work".into()), ..Caller::owner() }.is_admin());
        assert!(inside.has_same_credentials(&Caller::owner()) && inside.parts() != Caller::owner().parts());
        let reader = Caller { scopes: Scopes::READ, ..Caller::named("alice") };
        assert!(!reader.within("work".into()).scopes.contains(Scopes::CALL), "it gains nothing there");
    }

    #[test]
    fn scopes_have_names() {
        for (name, scope) in Scopes::NAMES {
            assert_eq!(Scopes::parse(name), Some(scope));
            assert_eq!(scope.names().collect::<Vec<_>>(), [name]);
        }
        assert_eq!((Scopes::ALL.both(Scopes::READ), Scopes::READ.both(Scopes::CALL)), (Scopes::READ, Scopes::NONE));
        assert_eq!((Scopes::parse("Read"), Scopes::ALL.names().count()), (None, 3));
    }
}

//! Who asks, and through which conversation.

use std::sync::Arc;

use crate::json::{Object, Raw};

/// An authenticated subject. The holder of the local token, and whoever started `hikite stdio`, is the owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    pub subject: Arc<str>,
}

/// The subject of whoever runs this hikite.
const OWNER: &str = "owner";

impl Caller {
    pub fn owner() -> Self {
        Self { subject: OWNER.into() }
    }

    /// Whether it may change what there is for everybody: register, unregister and switch tools.
    pub fn is_admin(&self) -> bool {
        &*self.subject == OWNER
    }
}

/// A number of our own for one client's session; never shown to anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// One client's conversation with us, as the sources see it.
#[derive(Debug)]
pub struct Session {
    pub id: SessionId,
    pub caller: Caller,
    pub abilities: Abilities,
}

/// The extension of the protocol for calls that go on after they are answered.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What the client can be asked while a call runs, and the extensions it knows: the capability objects it declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Abilities {
    pub sampling: Option<Raw>,
    pub elicitation: Option<Raw>,
    pub roots: Option<Raw>,
    pub extensions: Option<Raw>,
}

impl Abilities {
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

    /// The same as an object again.
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

    /// Whether the client knows an extension.
    pub fn knows(&self, extension: &str) -> bool {
        self.extensions.as_ref().and_then(Raw::object).is_some_and(|all| all.get(extension).is_some())
    }

    /// Everything a server could use: for looking at what a server offers, not for calling it.
    pub fn all() -> Self {
        let with = |members: &[&str]| {
            let object =
                members.iter().fold(Object::default(), |all, name| all.with(name, Raw::empty_object()));
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

    /// Whether the client can be asked anything.
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
            assert!(!Caller { subject: subject.into() }.is_admin(), "{subject:?}");
        }
    }
}

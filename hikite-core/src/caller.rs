//! Who asks, and through which conversation.

use std::sync::Arc;

use crate::json::{Object, Raw};

/// An authenticated subject. The holder of the local token, and whoever started `hikite stdio`, is the owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    pub subject: Arc<str>,
}

impl Caller {
    pub fn owner() -> Self {
        Self { subject: "owner".into() }
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

/// What the client can be asked while a call runs: the capability objects it declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    pub sampling: Option<Raw>,
    pub elicitation: Option<Raw>,
    pub roots: Option<Raw>,
}

impl Abilities {
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
        }
    }

    pub fn any(&self) -> bool {
        self.sampling.is_some() || self.elicitation.is_some() || self.roots.is_some()
    }
}

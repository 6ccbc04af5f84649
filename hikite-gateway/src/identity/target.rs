//! The resource that a token is for (RFC 8707): everything that its person may use, or one project. A token for a project
//! names it in its audience and in a claim, and opens nothing else; neither a code nor a refresh makes it wider.

use hikite_core::uri::encode;

use super::{Denied, Terms};

/// The resource that a request for a token names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target<'a> {
    /// None: what was allowed counts.
    #[default]
    Unsaid,
    /// This hikite as a whole.
    Whole,
    Project(&'a str),
}

impl<'a> Target<'a> {
    /// The project of a new token, where this one was allowed before; an error if more is asked for than was allowed.
    pub(super) fn within(self, allowed: Option<&'a str>) -> Result<Option<&'a str>, Denied> {
        match (self, allowed) {
            (Self::Unsaid, allowed) => Ok(allowed),
            (Self::Whole, None) => Ok(None),
            (Self::Project(wanted), None) => Ok(Some(wanted)),
            (Self::Project(wanted), Some(allowed)) if wanted == allowed => Ok(Some(allowed)),
            (Self::Whole | Self::Project(_), Some(_)) => {
                Err(Denied::Target("the user allowed one project, and this resource is another"))
            }
        }
    }
}

/// The audience of a token: the one address of MCP, or that of a project.
pub(super) fn audience(terms: &Terms, project: Option<&str>) -> String {
    match project {
        Some(project) => format!("{}/{}", terms.audience, encode(project)),
        None => terms.audience.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_for_more_than_was_allowed() {
        let within = |target: Target<'static>, allowed| target.within(allowed).ok();
        for (target, allowed, expected) in [
            (Target::Unsaid, None, Some(None)),
            (Target::Unsaid, Some("work"), Some(Some("work"))),
            (Target::Whole, None, Some(None)),
            (Target::Whole, Some("work"), None),
            (Target::Project("work"), None, Some(Some("work"))),
            (Target::Project("work"), Some("work"), Some(Some("work"))),
            (Target::Project("home"), Some("work"), None),
        ] {
            assert_eq!(within(target, allowed), expected, "{target:?} of {allowed:?}");
        }
    }
}

//! Resource indicators (RFC 8707): a token is for everything that its user may access, or for one project. A token for
//! a project names it in its audience and in a claim, and is valid for nothing else; neither a code nor a refresh
//! widens it.

use hikite_core::uri::encode;

use super::{TokenError, TokenTerms};

/// The resource that a token request names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceTarget<'a> {
    /// No resource named: the granted one applies.
    #[default]
    Unspecified,
    /// This hikite as a whole.
    Whole,
    Project(&'a str),
}

impl<'a> ResourceTarget<'a> {
    /// Returns the project of a new token, given the granted one. Fails if the request exceeds the grant.
    pub(super) fn within(self, allowed: Option<&'a str>) -> Result<Option<&'a str>, TokenError> {
        match (self, allowed) {
            (Self::Unspecified, allowed) => Ok(allowed),
            (Self::Whole, None) => Ok(None),
            (Self::Project(wanted), None) => Ok(Some(wanted)),
            (Self::Project(wanted), Some(allowed)) if wanted == allowed => Ok(Some(allowed)),
            (Self::Whole | Self::Project(_), Some(_)) => {
                Err(TokenError::Target("The user allowed one project, and this resource belongs to another."))
            }
        }
    }
}

/// Returns the audience of a token: the MCP endpoint, or that of a project.
pub(super) fn audience(terms: &TokenTerms, project: Option<&str>) -> String {
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
        let within = |target: ResourceTarget<'static>, allowed| target.within(allowed).ok();
        for (target, allowed, expected) in [
            (ResourceTarget::Unspecified, None, Some(None)),
            (ResourceTarget::Unspecified, Some("work"), Some(Some("work"))),
            (ResourceTarget::Whole, None, Some(None)),
            (ResourceTarget::Whole, Some("work"), None),
            (ResourceTarget::Project("work"), None, Some(Some("work"))),
            (ResourceTarget::Project("work"), Some("work"), Some(Some("work"))),
            (ResourceTarget::Project("home"), Some("work"), None),
        ] {
            assert_eq!(within(target, allowed), expected, "{target:?} of {allowed:?}");
        }
    }
}

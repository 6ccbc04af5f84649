//! Messages of the REST API for tool errors; the gateway has its own for models.

use hikite_core::error::{Error, Kind};

/// Rewrites the message of a tool error. `name` is the name that the caller used.
pub(crate) fn of_tool(name: &str, error: Error) -> Error {
    let message = match (error.kind, error.after_ms) {
        (Kind::ToolNotFound, _) => format!("Tool not found: {name}"),
        (Kind::ToolDisabled, _) => format!("Tool is disabled: {name}"),
        (Kind::Timeout, Some(after)) => format!("Execution timeout after {after}ms"),
        _ => return error,
    };
    Error { message: message.into(), ..error }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_specification() {
        let timeout = Error { after_ms: NonZeroU32::new(1500), ..Error::new(Kind::Timeout, "slow") };
        for (error, words) in [
            (Error::new(Kind::ToolNotFound, "there is no tool `x`"), "Tool not found: x"),
            (Error::new(Kind::ToolDisabled, "the tool `x` is disabled"), "Tool is disabled: x"),
            (timeout, "Execution timeout after 1500ms"),
            (Error::new(Kind::Timeout, "the body did not come in time"), "the body did not come in time"),
            (Error::new(Kind::Conflict, "taken"), "taken"),
        ] {
            assert_eq!(&*of_tool("x", error).message, words);
        }
    }

    #[test]
    fn what_to_do_about_it_stays() {
        let error = Error::new(Kind::ToolNotFound, "there is no tool `x`").hint("did you mean `y`?");
        assert_eq!(of_tool("x", error).hint.as_deref(), Some("did you mean `y`?"));
    }
}

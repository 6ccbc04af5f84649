//! Messages of the REST API for tool errors; the gateway has its own for models.

use hikite_core::error::{Error, ErrorKind};

/// Rewrites the message of a tool error. `name` is the name that the caller used.
pub(crate) fn tool_error(name: &str, error: Error) -> Error {
    let message = match (error.kind, error.timeout_ms) {
        (ErrorKind::ToolNotFound, _) => format!("Tool not found: {name}"),
        (ErrorKind::ToolDisabled, _) => format!("Tool is disabled: {name}"),
        (ErrorKind::Timeout, Some(after)) => format!("Execution timeout after {after}ms"),
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
        let timeout = Error { timeout_ms: NonZeroU32::new(1500), ..Error::new(ErrorKind::Timeout, "slow") };
        for (error, words) in [
            (Error::new(ErrorKind::ToolNotFound, "There is no tool `x`."), "Tool not found: x"),
            (Error::new(ErrorKind::ToolDisabled, "The tool `x` is disabled."), "Tool is disabled: x"),
            (timeout, "Execution timeout after 1500ms"),
            (Error::new(ErrorKind::Timeout, "the body did not come in time"), "the body did not come in time"),
            (Error::new(ErrorKind::Conflict, "taken"), "taken"),
        ] {
            assert_eq!(&*tool_error("x", error).message, words);
        }
    }

    #[test]
    fn what_to_do_about_it_stays() {
        let error = Error::new(ErrorKind::ToolNotFound, "There is no tool `x`.").hint("Did you mean `y`?");
        assert_eq!(tool_error("x", error).hint.as_deref(), Some("Did you mean `y`?"));
    }
}

//! Error texts by error code: a summary and the next step, in the language of the page. The messages of the API are
//! English; on a Japanese page they follow the translated summary.

use hikite_core::language::Language;

use crate::api::ApiError;
use crate::context::PageContext;
use crate::words::{say, translatable};

/// A summary of an error, and the next step for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorText {
    pub summary: &'static str,
    pub next_step: &'static str,
}

/// Code, summary and next step.
const TEXTS: &[(&str, &str, &str)] = &[
    (
        "TOOL_NOT_FOUND",
        translatable("The tool was not found."),
        translatable("Check the name, or choose a tool on the Modules page."),
    ),
    (
        "TOOL_DISABLED",
        translatable("The tool is disabled."),
        translatable("Enable it on its page, or approve it on the Pins page."),
    ),
    (
        "TOOL_EXECUTION_ERROR",
        translatable("The tool returned an error."),
        translatable("Read the tool's message and check the arguments."),
    ),
    ("VALIDATION_ERROR", translatable("The request is not valid."), translatable("Check the values and try again.")),
    ("NOT_FOUND", translatable("Not found."), translatable("It may have been removed. Go back and check the list.")),
    (
        "TIMEOUT",
        translatable("The call timed out."),
        translatable("It may still have run. Check the effect before you try again, or raise the timeout."),
    ),
    ("CANCELLED", translatable("The call was cancelled."), translatable("Run it again if you still need it.")),
    (
        "AUTHENTICATION_ERROR",
        translatable("Authentication failed."),
        translatable("Check your password, or log in again."),
    ),
    ("AUTHORIZATION_ERROR", translatable("You do not have permission."), translatable("Ask an admin for access.")),
    ("RATE_LIMIT_EXCEEDED", translatable("Too many requests."), translatable("Wait a moment, then try again.")),
    (
        "UPSTREAM_UNAVAILABLE",
        translatable("The server cannot be reached."),
        translatable("Check that the server is running and reachable, then try again."),
    ),
    (
        "ACCOUNT_REQUIRED",
        translatable("This tool needs an account."),
        translatable("Connect one on the Accounts page."),
    ),
    (
        "PAYLOAD_TOO_LARGE",
        translatable("The request or the result is too large."),
        translatable("Request less data, or raise the limit in the config file."),
    ),
    (
        "CONFLICT",
        translatable("The request conflicts with the current state."),
        translatable("Reload the page, and check whether the name is already in use."),
    ),
    ("OVERLOADED", translatable("hikite is overloaded."), translatable("Wait a moment, then try again.")),
    (
        "INTERNAL_ERROR",
        translatable("An internal error occurred."),
        translatable("Try again. If it happens again, check the server log."),
    ),
];

/// Returns the texts of an error code.
pub fn error_text(language: Language, code: &str) -> ErrorText {
    let known = TEXTS.iter().find(|(known, _, _)| *known == code).map(|(_, summary, next_step)| (*summary, *next_step));
    let (summary, next_step) =
        known.unwrap_or((translatable("Request failed"), translatable("Reload the page and try again.")));
    ErrorText { summary: say(language, summary), next_step: say(language, next_step) }
}

impl ApiError {
    /// Returns `true` if the pages wrote the message themselves, so that it is translated and complete.
    fn is_own(&self) -> bool {
        self.code.is_empty() && !self.message.is_empty()
    }

    pub(crate) fn headline(&self, context: &PageContext) -> String {
        if self.is_own() {
            return self.message.clone();
        }
        if context.language == Language::English && !self.message.is_empty() {
            return sentence(&self.message);
        }
        error_text(context.language, &self.code).summary.to_owned()
    }

    /// Returns the English message and hint, if the headline is not English.
    pub(crate) fn english(&self, context: &PageContext) -> Vec<String> {
        if self.is_own() || context.language == Language::English {
            return Vec::new();
        }
        let texts = [Some(&self.message), self.hint.as_ref()];
        texts.into_iter().flatten().filter(|text| !text.is_empty()).map(|text| sentence(text)).collect()
    }

    pub(crate) fn next_step(&self, context: &PageContext) -> Option<String> {
        if self.is_own() {
            return None;
        }
        match &self.hint {
            Some(hint) if context.language == Language::English => Some(sentence(hint)),
            _ => Some(error_text(context.language, &self.code).next_step.to_owned()),
        }
    }
}

/// Formats a message of the API as a sentence: a capital letter and a full stop. A first word that is not plain letters
/// may be a name and stays.
pub fn sentence(text: &str) -> String {
    let word = text.split([' ', ',', ':', ';']).next().unwrap_or_default();
    let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut out = String::with_capacity(text.len() + 1);
    match text.get(..1).filter(|_| is_plain) {
        Some(first) => {
            out.push_str(&first.to_ascii_uppercase());
            out.push_str(&text[1..]);
        }
        None => out.push_str(text),
    }
    if out.ends_with(|last: char| last.is_ascii_alphanumeric() || "`)\"'".contains(last)) {
        out.push('.');
    }
    out
}

#[cfg(test)]
mod tests {
    use hikite_core::error::{ErrorKind, TABLE};

    use super::*;

    #[test]
    fn every_error_that_a_page_can_show_has_a_next_step() {
        let unknown = error_text(Language::English, "");
        // The pages send none of these requests.
        let not_sent = [ErrorKind::MethodNotFound, ErrorKind::MethodNotAllowed, ErrorKind::MediaType];
        for definition in TABLE.iter().filter(|definition| !not_sent.contains(&definition.kind)) {
            assert_ne!(error_text(Language::English, definition.code), unknown, "{}", definition.code);
        }
    }

    #[test]
    fn a_japanese_page_says_in_japanese_what_to_do() {
        let hint = Some("choose another name".into());
        let taken = ApiError { code: "CONFLICT".into(), message: "it is taken".into(), hint, ..ApiError::default() };
        let (english, japanese) = (PageContext::for_test(Language::English), PageContext::for_test(Language::Japanese));
        assert_eq!((taken.headline(&english), taken.english(&english).len()), ("It is taken.".into(), 0));
        assert_eq!(taken.next_step(&english).as_deref(), Some("Choose another name."));
        assert_eq!(taken.headline(&japanese), "現在の状態と競合しています。");
        assert_eq!(taken.english(&japanese), ["It is taken.", "Choose another name."]);
        assert!(taken.next_step(&japanese).is_some_and(|text| text.ends_with("ください。")));
    }

    #[test]
    fn messages_become_sentences_and_names_stay() {
        for (text, expected) in [
            ("the tool `x` is disabled", "The tool `x` is disabled."),
            ("response_type is missing", "response_type is missing."),
            ("`a` failed", "`a` failed."),
            ("Already one.", "Already one."),
            ("", ""),
            ("é", "é"),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }
}

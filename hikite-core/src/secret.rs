//! Text that may hold a secret. `Debug` and `Display` print a masked form, and there is no `Serialize`: code that needs
//! the text has to call `expose`.

use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: Box<str>,
    shown: Box<str>,
}

/// Replacement for hidden text.
pub const MASK: &str = "***";

impl Secret {
    /// Creates a secret that prints as `***`.
    pub fn hidden(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), shown: MASK.into() }
    }

    /// Creates a secret that prints as `shown`: the configured text before variables were expanded.
    pub fn shown_as(text: impl Into<Box<str>>, shown: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), shown: shown.into() }
    }

    /// Returns the text itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret = Secret::hidden("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** \"***\"");
        assert_eq!(secret.expose(), "hunter2");
    }
}

//! Texts in English and Japanese.

use schemars::JsonSchema;
use serde::Deserialize;

/// A text in English, or in both languages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Text {
    Plain(String),
    Both { en: String, ja: String },
}

/// Display language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Japanese,
}

impl Language {
    pub const ALL: [(&'static str, Self); 2] = [("en", Self::English), ("ja", Self::Japanese)];
}

impl Text {
    /// Returns `true` if there is a Japanese text.
    pub(crate) fn is_in_both(&self) -> bool {
        matches!(self, Self::Both { .. })
    }

    pub(crate) fn get(&self, language: Language) -> &str {
        match (self, language) {
            (Self::Plain(text), _) | (Self::Both { en: text, .. }, Language::English) => text,
            (Self::Both { ja, .. }, Language::Japanese) => ja,
        }
    }
}

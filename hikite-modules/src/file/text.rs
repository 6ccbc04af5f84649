//! Texts in English and Japanese.

use schemars::JsonSchema;
use serde::Deserialize;

/// A text in English, or in both languages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum LocalizedText {
    Plain(String),
    Both { en: String, ja: String },
}

/// Display language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextLanguage {
    #[default]
    English,
    Japanese,
}

impl TextLanguage {
    pub const ALL: [(&'static str, Self); 2] = [("en", Self::English), ("ja", Self::Japanese)];
}

impl LocalizedText {
    /// Returns `true` if there is a Japanese text.
    pub(crate) fn is_in_both(&self) -> bool {
        matches!(self, Self::Both { .. })
    }

    pub(crate) fn get(&self, language: TextLanguage) -> &str {
        match (self, language) {
            (Self::Plain(text), _) | (Self::Both { en: text, .. }, TextLanguage::English) => text,
            (Self::Both { ja, .. }, TextLanguage::Japanese) => ja,
        }
    }
}

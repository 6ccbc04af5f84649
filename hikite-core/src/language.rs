//! Languages of the web pages, and negotiation by `Accept-Language`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    English,
    Japanese,
}

impl Language {
    pub fn named(tag: &str) -> Option<Self> {
        match tag {
            "en" => Some(Self::English),
            "ja" => Some(Self::Japanese),
            _ => None,
        }
    }

    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }

    /// Returns the language that `Accept-Language` prefers; English if it lists neither.
    pub fn preferred(wanted: &str) -> Self {
        let weight = |tag: &str| {
            let weights = wanted.split(',').filter_map(|part| {
                let mut parts = part.split(';').map(str::trim);
                let name = parts.next()?.split('-').next()?;
                let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
                name.eq_ignore_ascii_case(tag).then_some(quality)
            });
            weights.fold(0.0_f32, f32::max)
        };
        if weight("ja") > weight("en") { Self::Japanese } else { Self::English }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_one_that_is_liked_better() {
        for (wanted, tag) in [
            ("", "en"),
            ("ja", "ja"),
            ("ja-JP,ja;q=0.9,en;q=0.8", "ja"),
            ("en-US,en;q=0.9,ja;q=0.8", "en"),
            ("de,ja;q=0.1", "ja"),
            ("fr", "en"),
            ("ja;q=x", "ja"),
        ] {
            assert_eq!(Language::preferred(wanted).tag(), tag, "{wanted}");
            assert_eq!(Language::named(tag), Some(Language::preferred(wanted)));
        }
    }
}

//! What every token of another issuer must say of when and for whom it is.

use serde_json::Value;

/// Clocks of machines differ.
const LEEWAY_MS: u64 = 60_000;

/// When a token is good, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    ends: u64,
    begins: u64,
}

impl Times {
    /// A token without an end is none; a time that is no number is one that never comes.
    pub(crate) fn of(claims: &Value) -> Option<Self> {
        let ends = milliseconds(&claims["exp"])?;
        let time = |name: &str| match &claims[name] {
            Value::Null => Some(0),
            told => milliseconds(told),
        };
        Some(Self { ends, begins: time("nbf")?.max(time("iat")?) })
    }

    pub(crate) fn are_good(self, now: u64) -> bool {
        now < self.ends.saturating_add(LEEWAY_MS) && self.begins <= now.saturating_add(LEEWAY_MS)
    }
}

/// Whether a claim is the text, or a list that holds it.
pub(crate) fn holds(claim: &Value, wanted: &str) -> bool {
    match claim {
        Value::String(one) => one == wanted,
        Value::Array(all) => all.iter().any(|one| one == wanted),
        _ => false,
    }
}

pub(crate) fn text(claims: &Value, name: &str) -> Option<String> {
    claims[name].as_str().map(ToOwned::to_owned)
}

/// Seconds, which may have a fraction.
fn milliseconds(claim: &Value) -> Option<u64> {
    let seconds = claim.as_u64().or_else(|| {
        let seconds = claim.as_f64().filter(|seconds| *seconds >= 0.0)?;
        seconds.to_string().split('.').next()?.parse().ok()
    });
    seconds?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_good_between_its_times_and_a_minute_around() {
        const NOW: u64 = 1_000_000;
        for (claims, expected) in [
            (json!({ "exp": 1001 }), true),
            (json!({ "exp": 941 }), true),
            (json!({ "exp": 940 }), false),
            (json!({ "exp": 1001.5, "iat": 999.5 }), true),
            (json!({ "exp": 2000, "nbf": 1060 }), true),
            (json!({ "exp": 2000, "nbf": 1061 }), false),
            (json!({ "exp": 2000, "iat": 1061 }), false),
            (json!({ "exp": 2000, "nbf": "0" }), false),
            (json!({ "exp": "2000" }), false),
            (json!({ "exp": -5 }), false),
            (json!({ "exp": u64::MAX }), false),
            (json!({}), false),
        ] {
            assert_eq!(Times::of(&claims).is_some_and(|times| times.are_good(NOW)), expected, "{claims}");
        }
    }

    #[test]
    fn an_audience_is_exact() {
        let us = "https://h.example/mcp";
        assert!(holds(&json!(us), us) && holds(&json!(["x", us]), us));
        for wrong in [
            json!(null),
            json!("https://h.example/mcp/"),
            json!("https://h.example"),
            json!([]),
            json!({ "a": us }),
        ] {
            assert!(!holds(&wrong, us), "{wrong}");
        }
    }
}

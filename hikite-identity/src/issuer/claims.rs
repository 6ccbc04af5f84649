//! The `exp`, `nbf`, `iat` and `aud` claims that every external token must satisfy.

use serde_json::Value;

/// Tolerance for clock skew between machines.
const LEEWAY_MS: u64 = 60_000;

/// Validity period of a token, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValidityPeriod {
    expires_at: u64,
    not_before: u64,
}

impl ValidityPeriod {
    /// Reads the period from the claims. Returns `None` without `exp`, or if a time is not a number.
    pub(crate) fn of(claims: &Value) -> Option<Self> {
        let expires_at = milliseconds(&claims["exp"])?;
        let time = |name: &str| match &claims[name] {
            Value::Null => Some(0),
            told => milliseconds(told),
        };
        Some(Self { expires_at, not_before: time("nbf")?.max(time("iat")?) })
    }

    pub(crate) fn are_valid(self, now: u64) -> bool {
        now < self.expires_at.saturating_add(LEEWAY_MS) && self.not_before <= now.saturating_add(LEEWAY_MS)
    }
}

/// Returns `true` if a claim equals the text or is an array that contains it.
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

/// Converts seconds, possibly fractional, to milliseconds.
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
            assert_eq!(ValidityPeriod::of(&claims).is_some_and(|times| times.are_valid(NOW)), expected, "{claims}");
        }
    }

    #[test]
    fn an_audience_is_exact() {
        let us = "https://h.example/mcp";
        assert!(holds(&json!(us), us) && holds(&json!(["x", us]), us));
        for wrong in
            [json!(null), json!("https://h.example/mcp/"), json!("https://h.example"), json!([]), json!({ "a": us })]
        {
            assert!(!holds(&wrong, us), "{wrong}");
        }
    }
}

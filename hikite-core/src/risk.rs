//! Risk of calling a tool, from its annotations and the protocol's defaults: whatever a tool does not declare is not
//! assumed.

use crate::json::Object;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Risk {
    /// Changes nothing.
    Read,
    /// Changes something, but destroys nothing.
    Write,
    /// May destroy something; the default for tools that declare nothing else.
    #[default]
    Destructive,
}

impl Risk {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|risk| risk.name() == name)
    }

    /// Returns the risk of a tool with these annotations.
    pub fn of(annotations: &Object) -> Self {
        let says = |hint: &str, word: &str| annotations.get(hint).is_some_and(|said| said.as_str() == word);
        if says("readOnlyHint", "true") {
            Self::Read
        } else if says("destructiveHint", "false") {
            Self::Write
        } else {
            Self::Destructive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Raw;

    #[track_caller]
    fn check(annotations: &str, expected: Risk) {
        let annotations = Raw::parse(annotations.to_owned()).expect("valid").object().expect("an object");
        assert_eq!(Risk::of(&annotations), expected);
    }

    #[test]
    fn what_is_not_promised_is_not_assumed() {
        check("{}", Risk::Destructive);
        check(r#"{"readOnlyHint":true}"#, Risk::Read);
        check(r#"{"readOnlyHint":true,"destructiveHint":true}"#, Risk::Read);
        check(r#"{"destructiveHint":false}"#, Risk::Write);
        check(r#"{"readOnlyHint":false,"destructiveHint":false}"#, Risk::Write);
        check(r#"{"readOnlyHint":false}"#, Risk::Destructive);
        check(r#"{"destructiveHint":true}"#, Risk::Destructive);
        check(r#"{"readOnlyHint":"true","destructiveHint":null}"#, Risk::Destructive);
    }

    #[test]
    fn names_are_read_back() {
        for risk in Risk::ALL {
            assert_eq!(Risk::parse(risk.name()), Some(risk));
        }
        assert_eq!(Risk::parse("Read"), None);
    }
}

//! Shorthand for tool parameters: a list of `{name, type, description, required, …}` that is converted to JSON Schema
//! and checked as such.

use std::collections::HashSet;

use crate::check::ArgumentChecker;
use crate::json::{Object, Raw};
use crate::suggestion::did_you_mean;
use crate::violation::{Violation, step};

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array"];
/// Members of a parameter other than `name` and `required`.
const MEMBERS: &[&str] = &["type", "description", "default", "enum", "pattern", "minimum", "maximum"];
const PARAMETERS_MAX: usize = 1000;
/// Most members of one parameter, valid or not.
const MEMBERS_MAX: usize = 32;

/// Converts a parameter list to JSON Schema. Reports all violations at once.
pub fn schema(parameters: &Raw) -> Result<Raw, Vec<Violation>> {
    let Some(entries) = parameters.items() else {
        return Err(vec![Violation::new("", "the parameters must be a list")]);
    };
    if entries.len() > PARAMETERS_MAX {
        return Err(vec![Violation::new("", format!("a tool has at most {PARAMETERS_MAX} parameters"))]);
    }
    let mut list = ParameterList::default();
    for (index, entry) in entries.iter().enumerate() {
        list.add(&format!("/{index}"), entry);
    }
    if !list.faults.is_empty() {
        return Err(list.faults);
    }
    let mut schema = Object::default().with("type", "object").with("properties", list.properties);
    if !list.required.is_empty() {
        schema.set("required", Raw::of(&list.required));
    }
    let schema = schema.raw();
    match ArgumentChecker::new(Some(schema.clone())).find_problem() {
        Some(problem) => Err(vec![Violation::new("", problem)]),
        None => Ok(schema),
    }
}

#[derive(Default)]
struct ParameterList {
    properties: Object,
    required: Vec<String>,
    names: HashSet<String>,
    faults: Vec<Violation>,
}

impl ParameterList {
    fn add(&mut self, place: &str, entry: &Raw) {
        let Some(entry) = entry.object() else {
            return self.fault(place, "", "a parameter must be an object");
        };
        if entry.len() > MEMBERS_MAX {
            return self.fault(place, "", "a parameter has too many members");
        }
        let before = self.faults.len();
        let name = entry.text("name").filter(|name| !name.is_empty());
        match &name {
            None => self.fault(place, "/name", "Parameter name is required"),
            Some(name) if !self.names.insert(name.clone()) => {
                self.fault(place, "/name", &format!("Parameter `{name}` is defined twice"));
            }
            Some(_) => {}
        }
        let required = match entry.get("required").map(Raw::decode::<bool>) {
            None => false,
            Some(Ok(required)) => required,
            Some(Err(_)) => {
                self.fault(place, "/required", "must be true or false");
                false
            }
        };
        let mut property = Object::default();
        for (member, value) in entry.iter().filter(|(member, _)| !["name", "required"].contains(member)) {
            self.member(place, member, value);
            property.set(member, value.clone());
        }
        if property.get("type").is_none() {
            self.fault(place, "/type", &format!("Parameter type is required: one of {}", TYPES.join(", ")));
        }
        if self.faults.len() == before {
            self.check_consistency(place, &property);
        }
        let Some(name) = name else { return };
        if required {
            self.required.push(name.clone());
        }
        self.properties.set(&name, property);
    }

    /// Checks the type of one member.
    fn member(&mut self, place: &str, name: &str, value: &Raw) {
        let wrong = match name {
            "type" if !value.text().is_some_and(|kind| TYPES.contains(&kind.as_str())) => {
                format!("must be one of {}", TYPES.join(", "))
            }
            "description" | "pattern" if value.text().is_none() => "must be a string".into(),
            "minimum" | "maximum" if !value.value().is_number() => "must be a number".into(),
            "enum" if value.items().is_none_or(|options| options.is_empty()) => {
                "must be a list of the allowed values".into()
            }
            _ if MEMBERS.contains(&name) => return,
            _ => {
                let near = did_you_mean(name, MEMBERS.iter().copied().chain(["name", "required"]));
                near.map_or("is not a known member".into(), |near| format!("is not a known member. {near}"))
            }
        };
        self.fault(place, &step(name), &wrong);
    }

    /// Checks that the members of one parameter are consistent with each other.
    fn check_consistency(&mut self, place: &str, property: &Object) {
        let kind = property.text("type").unwrap_or_default();
        let is_number = matches!(kind.as_str(), "number" | "integer");
        for (member, fits, wanted) in [
            ("pattern", kind == "string", "string"),
            ("minimum", is_number, "number"),
            ("maximum", is_number, "number"),
        ] {
            if property.get(member).is_some() && !fits {
                self.fault(place, &step(member), &format!("is only for parameters of type {wanted}"));
            }
        }
        let limit = |name: &str| property.get(name).and_then(|raw| raw.value().as_f64());
        if let (Some(minimum), Some(maximum)) = (limit("minimum"), limit("maximum"))
            && minimum > maximum
        {
            self.fault(place, "/maximum", "must not be less than the minimum");
        }
        let only = |names: &[&str]| {
            let mut part = Object::default();
            let kept = property.iter().filter(|(name, _)| names.contains(name));
            kept.for_each(|(name, value)| part.set(name, value.clone()));
            ValueProbe::of(part)
        };
        if only(&["pattern"]).checker.find_problem().is_some() {
            return self.fault(place, "/pattern", "is not a supported regular expression");
        }
        let of_type = only(&["type"]);
        for (index, option) in property.get("enum").and_then(Raw::items).into_iter().flatten().enumerate() {
            if !of_type.accepts(&option) {
                self.fault(place, &format!("/enum/{index}"), &format!("is not of type {kind}"));
            }
        }
        if let Some(default) = property.get("default") {
            if !of_type.accepts(default) {
                self.fault(place, "/default", &format!("is not of type {kind}"));
            } else if !only(MEMBERS).accepts(default) {
                self.fault(place, "/default", "is not an allowed value of the parameter");
            }
        }
    }

    fn fault(&mut self, place: &str, member: &str, message: &str) {
        self.faults.push(Violation::new(format!("{place}{member}"), message));
    }
}

/// Checks single values against part of a parameter's schema.
struct ValueProbe {
    checker: ArgumentChecker,
}

impl ValueProbe {
    fn of(mut part: Object) -> Self {
        part.remove("default");
        let properties = Object::default().with("value", part);
        Self { checker: ArgumentChecker::new(Some(Object::default().with("properties", properties).raw())) }
    }

    /// Returns `true` if the value is valid without repair.
    fn accepts(&self, value: &Raw) -> bool {
        let arguments = Object::default().with("value", value.clone()).raw();
        self.checker.check(Some(&arguments)) == Ok(crate::check::CheckOutcome::AsSent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Raw, Vec<Violation>> {
        schema(&Raw::parse(text.to_owned()).expect("valid JSON"))
    }

    #[track_caller]
    fn refused(text: &str, expected: &[(&str, &str)]) {
        let faults = read(text).expect_err("refused");
        let faults: Vec<_> = faults.iter().map(|f| (f.pointer.as_str(), f.message.as_str())).collect();
        assert_eq!(faults, expected);
    }

    #[test]
    fn parameters_are_shown_as_json_schema() {
        let shown = read(
            r#"[
              {"name":"query","type":"string","description":"What to look for","required":true,"pattern":"^\\S"},
              {"name":"limit","type":"integer","description":"How many","default":10,"minimum":1,"maximum":100},
              {"name":"mode","type":"string","enum":["fast","slow"],"required":false},
              {"name":"options","type":"object","description":""},
              {"name":"tags","type":"array"},
              {"name":"dry","type":"boolean","default":false},
              {"name":"ratio","type":"number","default":0.50}
            ]"#,
        );
        assert_eq!(
            shown.expect("valid").as_str(),
            r#"{"type":"object","properties":{"query":{"type":"string","description":"What to look for","pattern":"^\\S"},"limit":{"type":"integer","description":"How many","default":10,"minimum":1,"maximum":100},"mode":{"type":"string","enum":["fast","slow"]},"options":{"type":"object","description":""},"tags":{"type":"array"},"dry":{"type":"boolean","default":false},"ratio":{"type":"number","default":0.50}},"required":["query"]}"#
        );
        assert_eq!(read("[]").expect("valid").as_str(), r#"{"type":"object","properties":{}}"#);
    }

    #[test]
    fn the_schema_checks_what_the_parameters_say() {
        let schema = read(r#"[{"name":"a","type":"number","required":true},{"name":"b","type":"string"}]"#);
        let checker = ArgumentChecker::new(schema.ok());
        let faults = checker.check(None).expect_err("missing");
        assert_eq!(faults[0].message, "Required parameter missing: a");
        let wrong = Raw::parse(r#"{"a":[],"more":1}"#).expect("valid");
        let faults = checker.check(Some(&wrong)).expect_err("wrong");
        assert_eq!(faults, [Violation::new("/a", "Invalid type for parameter a: expected number")]);
    }

    #[test]
    fn bad_entries_are_told_with_their_places() {
        refused("{}", &[("", "the parameters must be a list")]);
        refused(
            r#"[1,{"type":"string"},{"name":"a","type":"text"},{"name":"a","type":"string"},{"name":"b"},{"name":"c","type":"string","descripton":"x","required":"yes"}]"#,
            &[
                ("/0", "a parameter must be an object"),
                ("/1/name", "Parameter name is required"),
                ("/2/type", "must be one of string, number, integer, boolean, object, array"),
                ("/3/name", "Parameter `a` is defined twice"),
                ("/4/type", "Parameter type is required: one of string, number, integer, boolean, object, array"),
                ("/5/required", "must be true or false"),
                ("/5/descripton", "is not a known member. Did you mean `description`?"),
            ],
        );
    }

    #[test]
    fn members_that_do_not_agree_are_told() {
        refused(
            r#"[
              {"name":"a","type":"string","pattern":"("},
              {"name":"b","type":"integer","default":"5"},
              {"name":"c","type":"integer","default":5,"maximum":3},
              {"name":"d","type":"string","enum":["x",1]},
              {"name":"e","type":"string","enum":["x"],"default":"y"},
              {"name":"f","type":"number","minimum":2,"maximum":1},
              {"name":"g","type":"boolean","minimum":0},
              {"name":"h","type":"number","pattern":"x"},
              {"name":"i","type":"string","enum":[]},
              {"name":"j","type":"number","minimum":"0"}
            ]"#,
            &[
                ("/0/pattern", "is not a supported regular expression"),
                ("/1/default", "is not of type integer"),
                ("/2/default", "is not an allowed value of the parameter"),
                ("/3/enum/1", "is not of type string"),
                ("/4/default", "is not an allowed value of the parameter"),
                ("/5/maximum", "must not be less than the minimum"),
                ("/6/minimum", "is only for parameters of type number"),
                ("/7/pattern", "is only for parameters of type string"),
                ("/8/enum", "must be a list of the allowed values"),
                ("/9/minimum", "must be a number"),
            ],
        );
    }
}

//! Module file format: the description of a service in YAML. These types define the published schema; the meaning of
//! the parts is checked elsewhere.

mod named;
mod out;
mod page;
mod text;
mod tool;

use hikite_core::check::ArgumentChecker;
use hikite_core::json::Raw;
use hikite_core::violation::Violation;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub use named::NamedMap;
pub(crate) use out::{OutputFile, OutputFiles};
pub(crate) use page::{PaginationFile, PaginationLocation, PaginationStyle, PaginationUsage};
pub(crate) use text::LocalizedText;
pub use text::TextLanguage;
pub(crate) use tool::{
    ChunkFile, GroupNames, RecursionFile, ResponseFormat, RiskFile, ServiceRequestFile, ServiceToolFile, StepFile,
};

/// A service: where it is, how it speaks, and what tools are made of its requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A module of hikite")]
pub(crate) struct ModuleFile {
    /// The name of the module: small letters, digits and `_`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub(crate) module: String,
    pub(crate) title: String,
    pub(crate) description: LocalizedText,
    /// The version of the service's API.
    #[serde(default)]
    pub(crate) api_version: Option<String>,
    /// Where the service describes its API.
    #[serde(default)]
    pub(crate) docs: Option<String>,
    /// Whose credential is sent. Several modules may share one. Without it nothing is sent.
    #[serde(default)]
    pub(crate) provider: Option<String>,
    pub(crate) base: BaseUrl,
    /// Values that the address needs and the credential does not have.
    #[serde(default)]
    pub(crate) resolve: NamedMap<SiteLookupFile>,
    /// A cheap request that every good credential may make. It is sent once after an account was connected.
    #[serde(default)]
    pub(crate) verify: Option<VerifyFile>,
    /// Headers of every request.
    #[serde(default)]
    pub(crate) headers: NamedMap<String>,
    #[serde(default)]
    pub(crate) limits: RateLimitFile,
    #[serde(default)]
    pub(crate) retry: RetryRuleFile,
    #[serde(default)]
    pub(crate) errors: ErrorFile,
    /// Definitions in jq that every expression may use.
    #[serde(default)]
    pub(crate) defs: String,
    /// Ways of paging by their names.
    #[serde(default)]
    pub(crate) pages: NamedMap<PaginationFile>,
    /// Parameters that several tools take.
    #[serde(default)]
    pub(crate) groups: NamedMap<NamedMap<Value>>,
    pub(crate) tools: NamedMap<ServiceToolFile>,
    #[serde(default)]
    pub(crate) resources: NamedMap<ResourceFile>,
    #[serde(default)]
    pub(crate) prompts: NamedMap<PromptFile>,
}

/// The address that paths are put behind; by the kind of credential where it differs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum BaseUrl {
    One(String),
    By {
        #[serde(default)]
        bearer: Option<String>,
        #[serde(default)]
        basic: Option<String>,
    },
}

/// A request that lists what an account has, of which one is meant: sites of an organisation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SiteLookupFile {
    /// Scheme and host.
    pub(crate) at: String,
    #[serde(rename = "GET")]
    pub(crate) get: String,
    /// jq: each of them.
    pub(crate) rows: String,
    /// jq: what a person calls it.
    pub(crate) name: String,
    /// jq: what the address needs.
    pub(crate) value: String,
}

/// The request that proves a credential. It changes nothing and has no arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifyFile {
    /// The path, behind `base`.
    #[serde(rename = "GET")]
    pub(crate) get: String,
    #[serde(default)]
    pub(crate) query: NamedMap<Value>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RateLimitFile {
    /// Requests at once.
    pub(crate) concurrency: Option<usize>,
    /// Requests at once that change something.
    pub(crate) write_concurrency: Option<usize>,
    /// The least time between two of those.
    pub(crate) write_gap_ms: Option<u64>,
    /// The header that says how many requests are left.
    pub(crate) remaining: Option<String>,
    /// The header that says when there will be more.
    pub(crate) reset: Option<String>,
}

/// Which refusals are answered by asking again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetryRuleFile {
    pub(crate) status: Vec<u16>,
    /// jq on `{status, headers, body}`: further refusals.
    pub(crate) also: Option<String>,
    /// Headers that say how long to wait, the first that is there.
    pub(crate) after: Vec<String>,
    /// Besides the first.
    pub(crate) attempts: u32,
    /// Refusals after which nothing has happened, so that what changes something may be sent again.
    pub(crate) writes: Vec<u16>,
}

impl Default for RetryRuleFile {
    fn default() -> Self {
        Self {
            status: vec![429, 502, 503, 504],
            also: None,
            after: vec!["retry-after".into()],
            attempts: 3,
            writes: vec![429],
        }
    }
}

/// Where the words of a refusal are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ErrorFile {
    /// jq on its body.
    pub(crate) message: Option<String>,
    /// jq on its body.
    pub(crate) code: Option<String>,
}

/// Something that can be read under an address of its own; a tool gives it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceFile {
    /// `{name}` is an argument of the tool, `{+name}` one with slashes in it.
    pub(crate) uri: String,
    pub(crate) title: LocalizedText,
    pub(crate) description: LocalizedText,
    #[serde(default)]
    pub(crate) mime: Option<String>,
    pub(crate) tool: String,
    /// Further arguments.
    #[serde(default)]
    pub(crate) arguments: serde_json::Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptFile {
    pub(crate) title: LocalizedText,
    pub(crate) description: LocalizedText,
    #[serde(default)]
    pub(crate) arguments: NamedMap<String>,
    /// The prompt for the model; `{name}` is an argument.
    pub(crate) text: LocalizedText,
}

impl ModuleFile {
    /// Parses a module file. Returns all violations of the schema at once.
    pub(crate) fn read(yaml: &str) -> Result<Self, Vec<Violation>> {
        let value: Value = serde_saphyr::from_str(yaml).map_err(|error| {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            vec![Violation::new("", first.trim_start_matches("error: "))]
        })?;
        Self::deserialize(&value).map_err(|error| {
            // The schema check runs only if deserialization failed.
            let checked = ArgumentChecker::new(Raw::parse(SCHEMA).ok()).check_template(&value, &[]);
            let faults = checked.err().map(|faults| faults.into_iter().map(reword).collect());
            faults.unwrap_or_else(|| vec![Violation::new("", error.to_string())])
        })
    }
}

/// Rewords a violation: the checker refers to parameters, a file has members.
fn reword(fault: Violation) -> Violation {
    let message = if fault.message.starts_with("Required parameter missing") {
        "is missing".to_owned()
    } else if fault.message.starts_with("Unknown parameter") {
        "there is no such member".to_owned()
    } else {
        let starts = ["Invalid value for parameter ", "Invalid type for parameter "];
        let rest = starts.into_iter().find_map(|start| fault.message.strip_prefix(start));
        let why = rest.and_then(|rest| rest.split_once(": "));
        why.map_or_else(|| fault.message.clone(), |(_, why)| why.to_owned())
    };
    Violation { message, ..fault }
}

/// Published JSON schema of module files, generated from the types.
pub const SCHEMA: &str = include_str!("../../module.schema.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_one_the_types_make() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../module.schema.json");
        let made = serde_json::to_string_pretty(&schemars::schema_for!(ModuleFile)).expect("a schema is JSON") + "\n";
        if std::env::var_os("HIKITE_UPDATE").is_some_and(|value| value == "1") {
            std::fs::write(path, &made).expect("module.schema.json can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(made == committed, "module.schema.json is stale: run the tests with HIKITE_UPDATE=1");
    }

    fn page() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/module-files.md");
        std::fs::read_to_string(path).expect("docs/module-files.md")
    }

    #[test]
    fn the_example_of_the_page_is_right() {
        let page = page();
        let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
        let review = crate::review(example.expect("an example"), &crate::module::tests::settings());
        let review = review.unwrap_or_else(|faults| panic!("{faults:#?}"));
        assert_eq!((review.service.risks(), review.service.extras()), ([2, 1, 0], (1, 1)));
    }

    #[test]
    fn every_member_is_explained_on_the_page() {
        let (page, schema) = (page(), schemars::schema_for!(ModuleFile).to_value());
        let defined = schema["$defs"].as_object().into_iter().flatten().map(|(_, schema)| schema);
        for schema in defined.chain([&schema]) {
            let forms = schema["anyOf"].as_array().into_iter().flatten().chain([schema]);
            let members = forms.filter_map(|form| form["properties"].as_object()).flatten();
            for (name, _) in members {
                let is_named = [format!("`{name}`"), format!(" {name},"), format!(" {name} }}"), format!(" {name}: ")];
                assert!(is_named.iter().any(|word| page.contains(word)), "docs/module-files.md does not name `{name}`");
            }
        }
    }
}

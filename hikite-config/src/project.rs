//! The `projects` section. Its entries have the format of projects created at runtime.

use std::sync::Arc;

use hikite_core::json::{Object, Raw};
use hikite_identity::Project;
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::checker::ConfigChecker;
use super::one_or_many::OneOrMany;
use super::position::ConfigPath;
use super::server::SurfaceWord;
use super::tool::{faults_of, report_fault};

/// A boundary: who belongs to it, and which tools there are.
#[derive(Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Project")]
pub(crate) struct ProjectFile {
    /// Purpose of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Subjects that belong to it. Default: everybody who has a token for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<String>>,
    /// Which tools there are. Default: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<PermissionsFile>,
    /// Which account is used, by provider, where a call does not say. Default: that of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    accounts: Option<std::collections::BTreeMap<String, String>>,
    /// Surfaces of its clients. Default: that of `server.surface`.
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<OneOrMany<SurfaceWord>>,
    /// How tools are searched for; `null` switches it off. Default: `search.provider`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    #[schemars(with = "Option<OptimizationWord>")]
    optimization: Option<ExplicitOptimization>,
    /// In which form `call` and `tool_execute` give results, where a call does not say. Default: as the tools give them.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatWord>,
}

/// A member that is present, even as `null`.
#[derive(Clone, Copy, Serialize)]
#[serde(transparent)]
struct ExplicitOptimization(Option<OptimizationWord>);

/// How tools are searched for.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OptimizationWord {
    /// By the words of the question.
    Bm25,
    /// By its words and its meaning.
    Hybrid,
    /// By a service that the config names.
    Cloud,
}

/// In which form results are given.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormatWord {
    /// In as few tokens as they can be told in.
    Compact,
    /// As the tool gave them.
    Raw,
}

/// Which tools there are. What is denied is not there, whatever is allowed.
#[derive(Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Permissions")]
pub(crate) struct PermissionsFile {
    /// Allowed tools: `module`, `module:tool`, a glob of either, `/…/` over the key, `risk:…`, or an object of
    /// `module`, `tool`, `pattern` and `risk` of which all must hold. Default: everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<Value>>,
    /// Denied tools, in the syntax of `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<Vec<Value>>,
    /// Single tools by key, each `true` or `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Map<String, Value>>,
}

/// Deserializes `null` as a present value, unlike an absent member.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ExplicitOptimization>, D::Error> {
    Deserialize::deserialize(deserializer).map(|word| Some(ExplicitOptimization(word)))
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &NamedMap<ProjectFile>,
) -> Vec<Arc<Project>> {
    raw.iter().filter_map(|(name, raw)| project(check, &path.key(name), name, raw)).collect()
}

fn project(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    name: &str,
    raw: &ProjectFile,
) -> Option<Arc<Project>> {
    let written = serde_json::to_value(raw).ok()?;
    let form: Object = Raw::of(&written).object()?;
    match Project::read(name, &form) {
        Ok(project) => Some(Arc::new(Project { managed_by_file: true, ..project })),
        Err(error) => {
            for fault in faults_of(&error) {
                report_fault(check, path, &fault);
            }
            None
        }
    }
}

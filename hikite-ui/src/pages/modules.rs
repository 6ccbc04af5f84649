//! The modules: state, tools, and details of their servers.

use askama::Template;
use axum::extract::Path;
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::home::CallStatistics;
use crate::api::part;
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ModuleList {
    pub(crate) modules: Vec<ModuleInfo>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ModuleInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) kind: String,
    pub(crate) managed_by: String,
    pub(crate) state: String,
    pub(crate) error: Option<String>,
    /// Accounts behind an open circuit breaker.
    pub(crate) accounts: Vec<AccountBreaker>,
    pub(crate) version: Option<String>,
    pub(crate) tools: u64,
    pub(crate) resources: u64,
    pub(crate) prompts: u64,
    pub(crate) calls: CallStatistics,
    pub(crate) url: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) stderr: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// An account behind an open circuit breaker.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AccountBreaker {
    pub(crate) account: String,
}

impl ModuleInfo {
    pub(crate) fn is_disabled(&self) -> bool {
        self.state == "disabled"
    }

    pub(crate) fn has_process(&self) -> bool {
        matches!(&*self.kind, "stdio" | "http" | "sse")
    }

    fn command_line(&self) -> String {
        let words = self.command.iter().chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// A row of a tool list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolRow {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) enabled: bool,
    pub(crate) annotations: Value,
}

impl ToolRow {
    /// Returns the risk of a call, according to the tool's annotations.
    pub(crate) fn risk(&self) -> &'static str {
        risk(&self.annotations)
    }
}

pub(crate) fn risk(annotations: &Value) -> &'static str {
    let is = |name| annotations.get(name).and_then(Value::as_bool);
    match (is("readOnlyHint"), is("destructiveHint")) {
        (Some(true), _) => "read",
        (_, Some(false)) => "write",
        _ => "destructive",
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolPage {
    pub(crate) tools: Vec<ToolRow>,
    pub(crate) pagination: Pagination,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Pagination {
    pub(crate) page: u64,
    pub(crate) total: u64,
    pub(crate) total_pages: u64,
}

#[derive(Template)]
#[template(path = "modules.html")]
struct ModulesPage<'a> {
    context: &'a PageContext,
    modules: Vec<ModuleInfo>,
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    let ModuleList { modules } = context.get("/v1/modules").await.or_error_page(&context)?;
    page(&ModulesPage { context: &context, modules })
}

#[derive(Template)]
#[template(path = "module.html")]
struct ModulePage<'a> {
    context: &'a PageContext,
    module: ModuleInfo,
    tools: ToolPage,
}

/// Tools per page.
const ROWS: u32 = 100;

pub(crate) async fn show(context: PageContext, Path(name): Path<String>) -> PageResult {
    let module: ModuleInfo = context.get(&format!("/v1/modules/{}", part(&name))).await.or_error_page(&context)?;
    let number: u64 = context.parameter_or_empty("page").parse().unwrap_or(1);
    let tools = context.get(&format!("/v1/tools?module={}&limit={ROWS}&page={number}", part(&name))).await;
    page(&ModulePage { context: &context, module, tools: tools.or_error_page(&context)? })
}

pub(crate) async fn act(
    Path((name, action)): Path<(String, String)>,
    SubmittedForm { context, .. }: SubmittedForm,
) -> PageResult {
    let done = match &*action {
        "restart" => "restarted",
        "enable" => "enabled",
        "disable" => "disabled",
        _ => return redirect("/ui/modules"),
    };
    let path = format!("/v1/modules/{}/{action}", part(&name));
    context.send(Method::POST, &path, None).await.or_error_page(&context)?;
    redirect(&format!("/ui/modules/{}?done={done}", part(&name)))
}

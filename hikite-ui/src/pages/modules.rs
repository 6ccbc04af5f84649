//! The modules: state, tools, and details of their servers.

use askama::Template;
use axum::extract::Path;
use hikite_api::{Module, Modules, Tool, ToolPage};
use hikite_core::json::Raw;
use http::Method;
use serde_json::Value;

use super::home::CallText;
use crate::api::part;
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page};

/// A module as text.
trait ModuleText {
    fn has_process(&self) -> bool;
    fn command_line(&self) -> String;
}

impl ModuleText for Module {
    fn has_process(&self) -> bool {
        matches!(self.kind.as_deref(), Some("stdio" | "http" | "sse"))
    }

    fn command_line(&self) -> String {
        let words = self.command.iter().chain(self.args.iter().flatten());
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the risk of a call, according to the tool's annotations.
pub(crate) fn risk(tool: &Tool) -> &'static str {
    let annotations = tool.annotations.as_ref().map(Raw::value).unwrap_or_default();
    let is = |name| annotations.get(name).and_then(Value::as_bool);
    match (is("readOnlyHint"), is("destructiveHint")) {
        (Some(true), _) => "read",
        (_, Some(false)) => "write",
        _ => "destructive",
    }
}

#[derive(Template)]
#[template(path = "modules.html")]
struct ModulesPage<'a> {
    context: &'a PageContext,
    modules: Vec<Module>,
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    let Modules { modules } = context.get("/v1/modules").await.or_error_page(&context)?;
    page(&ModulesPage { context: &context, modules })
}

#[derive(Template)]
#[template(path = "module.html")]
struct ModulePage<'a> {
    context: &'a PageContext,
    module: Module,
    tools: ToolPage,
}

/// Tools per page.
const ROWS: u32 = 100;

pub(crate) async fn show(context: PageContext, Path(name): Path<String>) -> PageResult {
    let module: Module = context.get(&format!("/v1/modules/{}", part(&name))).await.or_error_page(&context)?;
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

//! The modules: state, tools, and details of their servers.

use askama::Template;
use axum::extract::Path;
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::home::Calls;
use crate::api::part;
use crate::form::Form;
use crate::number;
use crate::page::{Answer, OrTrouble, go, show as page};
use crate::seat::Seat;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Modules {
    pub(crate) modules: Vec<Module>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) kind: String,
    pub(crate) managed_by: String,
    pub(crate) state: String,
    pub(crate) error: Option<String>,
    /// Accounts behind an open circuit breaker.
    pub(crate) accounts: Vec<Troubled>,
    pub(crate) version: Option<String>,
    pub(crate) tools: u64,
    pub(crate) resources: u64,
    pub(crate) prompts: u64,
    pub(crate) calls: Calls,
    pub(crate) url: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) stderr: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// An account behind an open circuit breaker.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Troubled {
    pub(crate) account: String,
}

impl Module {
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
struct List<'a> {
    seat: &'a Seat,
    modules: Vec<Module>,
}

pub(crate) async fn list(seat: Seat) -> Answer {
    let Modules { modules } = seat.get("/v1/modules").await.or_trouble(&seat)?;
    page(&List { seat: &seat, modules })
}

#[derive(Template)]
#[template(path = "module.html")]
struct One<'a> {
    seat: &'a Seat,
    module: Module,
    tools: ToolPage,
}

/// Tools per page.
const ROWS: u32 = 100;

pub(crate) async fn show(seat: Seat, Path(name): Path<String>) -> Answer {
    let module: Module = seat.get(&format!("/v1/modules/{}", part(&name))).await.or_trouble(&seat)?;
    let number: u64 = seat.said("page").parse().unwrap_or(1);
    let tools = seat.get(&format!("/v1/tools?module={}&limit={ROWS}&page={number}", part(&name))).await;
    page(&One { seat: &seat, module, tools: tools.or_trouble(&seat)? })
}

pub(crate) async fn act(Path((name, deed)): Path<(String, String)>, Form { seat, .. }: Form) -> Answer {
    let done = match &*deed {
        "restart" => "restarted",
        "enable" => "enabled",
        "disable" => "disabled",
        _ => return go("/ui/modules"),
    };
    let path = format!("/v1/modules/{}/{deed}", part(&name));
    seat.send(Method::POST, &path, None).await.or_trouble(&seat)?;
    go(&format!("/ui/modules/{}?done={done}", part(&name)))
}

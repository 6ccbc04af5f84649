//! Projects: members, tools, search settings, and the menu as a model sees it.

use askama::Template;
use axum::extract::Path;
use hikite_api::{Menu, PermissionsAnswer, Token, Tokens};
use hikite_core::json::Raw;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::permissions::{PermissionLines, preview};
use crate::api::{ApiError, part};
use crate::context::PageContext;
use crate::form::{SubmittedFields, SubmittedForm};
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page, with_status};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ProjectInfo {
    name: String,
    description: Option<String>,
    members: Vec<String>,
    permissions: Option<Value>,
    surface: Value,
    /// `null` is off; absent inherits the global setting.
    #[serde(deserialize_with = "present")]
    optimization: Option<Value>,
    managed_by_file: bool,
    created_at: Option<String>,
}

/// Distinguishes a `null` member from an absent one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ProjectInfo {
    fn surfaces(&self) -> Vec<String> {
        match &self.surface {
            Value::String(one) => vec![one.clone()],
            Value::Array(several) => several.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            _ => Vec::new(),
        }
    }

    fn search(&self) -> &str {
        match &self.optimization {
            None => "",
            Some(Value::String(word)) => word,
            Some(_) => "off",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProjectList {
    projects: Vec<ProjectInfo>,
}

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage<'a> {
    context: &'a PageContext,
    projects: Vec<ProjectInfo>,
    name: String,
    description: String,
    refused: Option<ApiError>,
}

/// An option and whether it is selected.
struct SelectOption {
    value: &'static str,
    name: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "project.html")]
struct ProjectPage<'a> {
    context: &'a PageContext,
    project: ProjectInfo,
    description: String,
    members: String,
    lines: PermissionLines,
    surfaces: Vec<SelectOption>,
    searches: Vec<SelectOption>,
    menu: Option<Menu>,
    seen: Option<PermissionsAnswer>,
    tokens: Vec<Token>,
    refused: Option<ApiError>,
}

/// A tool menu as text.
trait MenuText {
    fn text(&self) -> String;
    fn saved(&self) -> String;
}

impl MenuText for Menu {
    fn text(&self) -> String {
        serde_json::to_string_pretty(&self.tools.iter().map(Raw::value).collect::<Vec<_>>()).unwrap_or_default()
    }

    fn saved(&self) -> String {
        let left = self.tokens.saturating_mul(1000).checked_div(self.flat_tokens).unwrap_or(1000).min(1000);
        format!("{}.{} %", (1000 - left) / 10, (1000 - left) % 10)
    }
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    let ProjectList { projects } = context.get("/v1/projects").await.or_error_page(&context)?;
    page(&ProjectsPage { context: &context, projects, name: String::new(), description: String::new(), refused: None })
}

pub(crate) async fn create(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let name = fields.text("name");
    let mut body = json!({ "name": name });
    if let Some(description) = fields.some("description") {
        body["description"] = Value::from(description);
    }
    match context.post("/v1/projects", &body).await {
        Ok(_) => redirect(&format!("/ui/projects/{}?done=saved", part(name))),
        Err(refused) => {
            let ProjectList { projects } = context.get_or_default("/v1/projects").await;
            let (name, description) = (name.to_owned(), fields.text("description").to_owned());
            let status = refused.status;
            Ok(with_status(
                status,
                &ProjectsPage { context: &context, projects, name, description, refused: Some(refused) },
            ))
        }
    }
}

pub(crate) async fn show(context: PageContext, Path(name): Path<String>) -> PageResult {
    let project: ProjectInfo = context.get(&format!("/v1/projects/{}", part(&name))).await.or_error_page(&context)?;
    let lines = PermissionLines::of(project.permissions.as_ref());
    let one = project_page(&context, project, lines, None).await;
    page(&one)
}

pub(crate) async fn save(Path(name): Path<String>, SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let path = format!("/v1/projects/{}", part(&name));
    let outcome = match changes(&fields) {
        Ok(changes) => context.send(Method::PATCH, &path, Some(&changes)).await,
        Err(why) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            context.tn("The JSON is not valid. Correct it and save again: {}", why),
        )),
    };
    match outcome {
        Ok(_) => redirect(&format!("/ui/projects/{}?done=saved", part(&name))),
        Err(refused) => {
            let mut project: ProjectInfo = context.get(&path).await.or_error_page(&context)?;
            project.description = Some(fields.text("description").to_owned());
            project.members = fields.list("members");
            let status = refused.status;
            Ok(with_status(
                status,
                &project_page(&context, project, PermissionLines::read(&fields), Some(refused)).await,
            ))
        }
    }
}

pub(crate) async fn remove(Path(name): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.send(Method::DELETE, &format!("/v1/projects/{}", part(&name)), None).await.or_error_page(&context)?;
    redirect("/ui/projects?done=removed")
}

fn changes(fields: &SubmittedFields) -> Result<Value, String> {
    let surfaces: Vec<&str> = fields.all("surface").collect();
    let mut changes = json!({
        "description": fields.some("description"),
        "members": fields.list("members"),
        "permissions": PermissionLines::read(fields).value()?,
        "surface": if surfaces.is_empty() { Value::Null } else { json!(surfaces) },
    });
    match fields.text("optimization") {
        "" => {}
        "off" => changes["optimization"] = Value::Null,
        word => changes["optimization"] = Value::from(word),
    }
    Ok(changes)
}

async fn project_page(
    context: &PageContext,
    project: ProjectInfo,
    lines: PermissionLines,
    refused: Option<ApiError>,
) -> ProjectPage<'_> {
    let menu: Option<Menu> = context.get(&format!("/v1/menu?project={}", part(&project.name))).await.ok();
    let seen = match lines.value() {
        Ok(permissions) => preview(context, &permissions).await,
        Err(_) => None,
    };
    let Tokens { mut tokens } = context.get_or_default("/v1/tokens").await;
    tokens.retain(|token| token.project.as_deref() == Some(&*project.name));
    let (surfaces, search) = (project.surfaces(), project.search().to_owned());
    let surface = |value: &'static str, name| SelectOption {
        value,
        name,
        is_chosen: surfaces.iter().any(|known| known == value),
    };
    let way = |value: &'static str, name| SelectOption { value, name, is_chosen: search == value };
    ProjectPage {
        context,
        description: project.description.clone().unwrap_or_default(),
        members: project.members.join("\n"),
        lines,
        surfaces: vec![
            surface("modules", context.t("Modules: open a module, call its tools, run batches")),
            surface("search", context.t("Search: find a tool and run it")),
            surface("categories", context.t("Categories: open one category at a time")),
            surface("direct", context.t("Direct: list every tool by name")),
        ],
        searches: vec![
            way("", context.t("Inherit the global setting")),
            way("off", context.t("Off")),
            way("bm25", context.t("Keyword search (bm25)")),
            way("hybrid", context.t("Keyword and semantic search (hybrid)")),
            way("cloud", context.t("External search service (cloud)")),
        ],
        project,
        menu,
        seen,
        tokens,
        refused,
    }
}

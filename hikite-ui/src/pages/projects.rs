//! Projects: members, tools, search settings, and the menu as a model sees it.

use askama::Template;
use axum::extract::Path;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::permissions::{Lines, Preview, preview};
use crate::api::{Refused, part};
use crate::form::{Fields, Form};
use crate::number;
use crate::page::{Answer, OrTrouble, go, show as page, with_status};
use crate::seat::Seat;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Project {
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

impl Project {
    fn surfaces(&self) -> Vec<String> {
        match &self.surface {
            Value::String(one) => vec![one.clone()],
            Value::Array(several) => {
                several.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
            }
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
struct Projects {
    projects: Vec<Project>,
}

#[derive(Template)]
#[template(path = "projects.html")]
struct List<'a> {
    seat: &'a Seat,
    projects: Vec<Project>,
    name: String,
    description: String,
    refused: Option<Refused>,
}

/// An option and whether it is selected.
struct Choice {
    value: &'static str,
    name: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "project.html")]
struct One<'a> {
    seat: &'a Seat,
    project: Project,
    description: String,
    members: String,
    lines: Lines,
    surfaces: Vec<Choice>,
    searches: Vec<Choice>,
    menu: Option<Menu>,
    seen: Option<Preview>,
    tokens: Vec<Token>,
    refused: Option<Refused>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Token {
    name: String,
    subject: String,
    project: Option<String>,
    expires_at: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    tokens: Vec<Token>,
}

/// The tool menu of a model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Menu {
    tools: Vec<Value>,
    tokens: u64,
    flat_tokens: u64,
}

impl Menu {
    fn text(&self) -> String {
        serde_json::to_string_pretty(&self.tools).unwrap_or_default()
    }

    fn saved(&self) -> String {
        let left = self.tokens.saturating_mul(1000).checked_div(self.flat_tokens).unwrap_or(1000).min(1000);
        format!("{}.{} %", (1000 - left) / 10, (1000 - left) % 10)
    }
}

pub(crate) async fn list(seat: Seat) -> Answer {
    let Projects { projects } = seat.get("/v1/projects").await.or_trouble(&seat)?;
    page(&List { seat: &seat, projects, name: String::new(), description: String::new(), refused: None })
}

pub(crate) async fn create(Form { seat, fields }: Form) -> Answer {
    let name = fields.text("name");
    let mut body = json!({ "name": name });
    if let Some(description) = fields.some("description") {
        body["description"] = Value::from(description);
    }
    match seat.post("/v1/projects", &body).await {
        Ok(_) => go(&format!("/ui/projects/{}?done=saved", part(name))),
        Err(refused) => {
            let Projects { projects } = seat.get_or_default("/v1/projects").await;
            let (name, description) = (name.to_owned(), fields.text("description").to_owned());
            let status = refused.status;
            Ok(with_status(
                status,
                &List { seat: &seat, projects, name, description, refused: Some(refused) },
            ))
        }
    }
}

pub(crate) async fn show(seat: Seat, Path(name): Path<String>) -> Answer {
    let project: Project = seat.get(&format!("/v1/projects/{}", part(&name))).await.or_trouble(&seat)?;
    let lines = Lines::of(project.permissions.as_ref());
    let one = whole(&seat, project, lines, None).await;
    page(&one)
}

pub(crate) async fn save(Path(name): Path<String>, Form { seat, fields }: Form) -> Answer {
    let path = format!("/v1/projects/{}", part(&name));
    let outcome = match changes(&fields) {
        Ok(changes) => seat.send(Method::PATCH, &path, Some(&changes)).await,
        Err(why) => Err(Refused::new(StatusCode::BAD_REQUEST, why)),
    };
    match outcome {
        Ok(_) => go(&format!("/ui/projects/{}?done=saved", part(&name))),
        Err(refused) => {
            let mut project: Project = seat.get(&path).await.or_trouble(&seat)?;
            project.description = Some(fields.text("description").to_owned());
            project.members = fields.list("members");
            let status = refused.status;
            Ok(with_status(status, &whole(&seat, project, Lines::read(&fields), Some(refused)).await))
        }
    }
}

pub(crate) async fn remove(Path(name): Path<String>, Form { seat, .. }: Form) -> Answer {
    seat.send(Method::DELETE, &format!("/v1/projects/{}", part(&name)), None).await.or_trouble(&seat)?;
    go("/ui/projects?done=removed")
}

fn changes(fields: &Fields) -> Result<Value, String> {
    let surfaces: Vec<&str> = fields.all("surface").collect();
    let mut changes = json!({
        "description": fields.some("description"),
        "members": fields.list("members"),
        "permissions": Lines::read(fields).value()?,
        "surface": if surfaces.is_empty() { Value::Null } else { json!(surfaces) },
    });
    match fields.text("optimization") {
        "" => {}
        "off" => changes["optimization"] = Value::Null,
        word => changes["optimization"] = Value::from(word),
    }
    Ok(changes)
}

async fn whole(seat: &Seat, project: Project, lines: Lines, refused: Option<Refused>) -> One<'_> {
    let menu: Option<Menu> = seat.get(&format!("/v1/menu?project={}", part(&project.name))).await.ok();
    let seen = match lines.value() {
        Ok(permissions) => preview(seat, &permissions).await,
        Err(_) => None,
    };
    let Tokens { mut tokens } = seat.get_or_default("/v1/tokens").await;
    tokens.retain(|token| token.project.as_deref() == Some(&*project.name));
    let (surfaces, search) = (project.surfaces(), project.search().to_owned());
    let surface = |value: &'static str, name| Choice {
        value,
        name,
        is_chosen: surfaces.iter().any(|known| known == value),
    };
    let way = |value: &'static str, name| Choice { value, name, is_chosen: search == value };
    One {
        seat,
        description: project.description.clone().unwrap_or_default(),
        members: project.members.join("\n"),
        lines,
        surfaces: vec![
            surface("modules", seat.t("Modules: open one, call, batch")),
            surface("search", seat.t("Search: find a tool and run it")),
            surface("categories", seat.t("Categories: open one at a time")),
            surface("direct", seat.t("Direct: every tool under its own name")),
        ],
        searches: vec![
            way("", seat.t("as the house has it")),
            way("off", seat.t("Off")),
            way("bm25", seat.t("By words (bm25)")),
            way("hybrid", seat.t("By words and meaning (hybrid)")),
            way("cloud", seat.t("By a service of yours (cloud)")),
        ],
        project,
        menu,
        seen,
        tokens,
        refused,
    }
}

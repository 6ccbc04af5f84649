//! Categories: named selections of tools, defined here or in the config file.

use askama::Template;
use axum::extract::Path;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::modules::Modules;
use crate::api::{Refused, part};
use crate::form::{Fields, Form};
use crate::page::{Answer, OrTrouble, go, show as page, with_status};
use crate::seat::Seat;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Category {
    name: String,
    description: Option<String>,
    managed_by: String,
    tools: Value,
    /// The definition, if it can be changed here.
    form: Option<Definition>,
}

impl Category {
    fn count(&self) -> String {
        match &self.tools {
            Value::Array(tools) => tools.len().to_string(),
            Value::Number(count) => count.to_string(),
            _ => "–".into(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Definition {
    server: Value,
    skill: Option<String>,
    tools: Map<String, Value>,
}

impl Definition {
    fn servers(&self) -> Vec<String> {
        match &self.server {
            Value::String(one) => vec![one.clone()],
            Value::Array(several) => {
                several.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns names and patterns, one per line.
    fn lines(&self, name: &str, pattern: &str) -> String {
        let of = |member| self.tools.get(member).and_then(Value::as_array).into_iter().flatten();
        of(name).chain(of(pattern)).filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Categories {
    categories: Vec<Category>,
}

#[derive(Template)]
#[template(path = "categories.html")]
struct List<'a> {
    seat: &'a Seat,
    categories: Vec<Category>,
    form: Draft,
    servers: Vec<String>,
    refused: Option<Refused>,
}

#[derive(Template)]
#[template(path = "category.html")]
struct Edit<'a> {
    seat: &'a Seat,
    form: Draft,
    servers: Vec<String>,
    refused: Option<Refused>,
}

/// The values of the form.
#[derive(Clone, Debug, Default)]
struct Draft {
    name: String,
    description: String,
    skill: String,
    chosen: Vec<String>,
    include: String,
    exclude: String,
    overrides: String,
}

impl Draft {
    fn has(&self, server: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen == server)
    }

    fn of(category: &Category) -> Self {
        let definition = category.form.clone().unwrap_or_default();
        Self {
            name: category.name.clone(),
            description: category.description.clone().unwrap_or_default(),
            skill: definition.skill.clone().unwrap_or_default(),
            chosen: definition.servers(),
            include: definition.lines("includeNames", "includePatterns"),
            exclude: definition.lines("excludeNames", "excludePatterns"),
            overrides: definition.tools.get("overrides").map(Value::to_string).unwrap_or_default(),
        }
    }

    fn read(fields: &Fields) -> Self {
        let text = |name| fields.text(name).replace("\r\n", "\n");
        Self {
            name: text("name"),
            description: text("description"),
            skill: text("skill"),
            chosen: fields.all("server").map(str::to_owned).collect(),
            include: text("include"),
            exclude: text("exclude"),
            overrides: text("overrides"),
        }
    }

    /// Builds the API request. Text with a wildcard or between slashes is a pattern, everything else a name.
    fn definition(&self) -> Result<Value, String> {
        let is_pattern = |line: &&str| line.contains(['*', '?', '{', '[']) || line.starts_with('/');
        let mut tools = Map::new();
        for (lines, names, patterns) in [
            (&self.include, "includeNames", "includePatterns"),
            (&self.exclude, "excludeNames", "excludePatterns"),
        ] {
            let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
            let (found, plain): (Vec<_>, Vec<_>) = lines.partition(is_pattern);
            for (member, list) in [(names, plain), (patterns, found)] {
                if !list.is_empty() {
                    tools.insert(member.into(), json!(list));
                }
            }
        }
        if !self.overrides.trim().is_empty() {
            let overrides = serde_json::from_str(&self.overrides).map_err(|error| error.to_string())?;
            tools.insert("overrides".into(), overrides);
        }
        let mut definition = json!({ "server": self.chosen, "description": self.description });
        if !self.skill.is_empty() {
            definition["skill"] = Value::from(self.skill.as_str());
        }
        if !tools.is_empty() {
            definition["tools"] = Value::Object(tools);
        }
        Ok(definition)
    }
}

pub(crate) async fn list(seat: Seat) -> Answer {
    let Categories { categories } = seat.get("/v1/categories").await.or_trouble(&seat)?;
    let servers = servers(&seat).await;
    page(&List { seat: &seat, categories, form: Draft::default(), servers, refused: None })
}

pub(crate) async fn edit(seat: Seat, Path(name): Path<String>) -> Answer {
    let category: Category = seat.get(&format!("/v1/categories/{}", part(&name))).await.or_trouble(&seat)?;
    if category.managed_by == "file" {
        return go("/ui/categories");
    }
    let servers = servers(&seat).await;
    page(&Edit { seat: &seat, form: Draft::of(&category), servers, refused: None })
}

pub(crate) async fn save(Form { seat, fields }: Form) -> Answer {
    let form = Draft::read(&fields);
    let outcome = match form.definition() {
        Ok(definition) => {
            seat.send(Method::PUT, &format!("/v1/categories/{}", part(&form.name)), Some(&definition)).await
        }
        Err(why) => Err(Refused::new(StatusCode::BAD_REQUEST, why)),
    };
    match outcome {
        Ok(_) => go("/ui/categories?done=saved"),
        Err(refused) => {
            let (status, servers) = (refused.status, servers(&seat).await);
            Ok(with_status(status, &Edit { seat: &seat, form, servers, refused: Some(refused) }))
        }
    }
}

pub(crate) async fn remove(Path(name): Path<String>, Form { seat, .. }: Form) -> Answer {
    seat.send(Method::DELETE, &format!("/v1/categories/{}", part(&name)), None).await.or_trouble(&seat)?;
    go("/ui/categories?done=removed")
}

async fn servers(seat: &Seat) -> Vec<String> {
    let modules: Modules = seat.get_or_default("/v1/modules").await;
    modules.modules.into_iter().map(|module| module.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_are_told_apart_and_come_back() {
        let draft = Draft {
            chosen: vec!["a".into(), "b".into()],
            include: "read_file\nlist_*".into(),
            exclude: "/^x/".into(),
            ..Draft::default()
        };
        let definition = draft.definition().expect("a definition");
        assert_eq!(
            definition,
            json!({ "server": ["a", "b"], "description": "", "tools": {
                "includeNames": ["read_file"], "includePatterns": ["list_*"], "excludePatterns": ["/^x/"] } })
        );
        let read = Definition::deserialize(&definition).expect("a definition");
        assert_eq!(
            (read.servers(), read.lines("includeNames", "includePatterns")),
            (draft.chosen, draft.include)
        );
    }
}

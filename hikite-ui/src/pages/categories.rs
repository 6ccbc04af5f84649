//! Categories: named selections of tools, defined here or in the config file.

use askama::Template;
use axum::extract::Path;
use hikite_api::Modules;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::{ApiError, part};
use crate::context::PageContext;
use crate::form::{SubmittedFields, SubmittedForm};
use crate::page::{OrErrorPage, PageResult, redirect, show as page, with_status};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CategoryInfo {
    name: String,
    description: Option<String>,
    managed_by: String,
    tools: Value,
    /// The definition, if it can be changed here.
    form: Option<CategoryDefinition>,
}

impl CategoryInfo {
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
struct CategoryDefinition {
    server: Value,
    skill: Option<String>,
    tools: Map<String, Value>,
}

impl CategoryDefinition {
    fn servers(&self) -> Vec<String> {
        match &self.server {
            Value::String(one) => vec![one.clone()],
            Value::Array(several) => several.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
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
struct CategoryList {
    categories: Vec<CategoryInfo>,
}

#[derive(Template)]
#[template(path = "categories.html")]
struct CategoriesPage<'a> {
    context: &'a PageContext,
    categories: Vec<CategoryInfo>,
    form: CategoryDraft,
    servers: Vec<String>,
    refused: Option<ApiError>,
}

#[derive(Template)]
#[template(path = "category.html")]
struct CategoryPage<'a> {
    context: &'a PageContext,
    form: CategoryDraft,
    servers: Vec<String>,
    refused: Option<ApiError>,
}

/// The values of the form.
#[derive(Clone, Debug, Default)]
struct CategoryDraft {
    name: String,
    description: String,
    skill: String,
    chosen: Vec<String>,
    include: String,
    exclude: String,
    overrides: String,
}

impl CategoryDraft {
    fn has(&self, server: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen == server)
    }

    fn of(category: &CategoryInfo) -> Self {
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

    fn read(fields: &SubmittedFields) -> Self {
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
        for (lines, names, patterns) in
            [(&self.include, "includeNames", "includePatterns"), (&self.exclude, "excludeNames", "excludePatterns")]
        {
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

pub(crate) async fn list(context: PageContext) -> PageResult {
    let CategoryList { categories } = context.get("/v1/categories").await.or_error_page(&context)?;
    let servers = servers(&context).await;
    page(&CategoriesPage { context: &context, categories, form: CategoryDraft::default(), servers, refused: None })
}

pub(crate) async fn edit(context: PageContext, Path(name): Path<String>) -> PageResult {
    let category: CategoryInfo =
        context.get(&format!("/v1/categories/{}", part(&name))).await.or_error_page(&context)?;
    if category.managed_by == "file" {
        return redirect("/ui/categories");
    }
    let servers = servers(&context).await;
    page(&CategoryPage { context: &context, form: CategoryDraft::of(&category), servers, refused: None })
}

pub(crate) async fn save(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let form = CategoryDraft::read(&fields);
    let outcome = match form.definition() {
        Ok(definition) => {
            context.send(Method::PUT, &format!("/v1/categories/{}", part(&form.name)), Some(&definition)).await
        }
        Err(why) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            context.tn("The JSON is not valid. Correct it and save again: {}", why),
        )),
    };
    match outcome {
        Ok(_) => redirect("/ui/categories?done=saved"),
        Err(refused) => {
            let (status, servers) = (refused.status, servers(&context).await);
            Ok(with_status(status, &CategoryPage { context: &context, form, servers, refused: Some(refused) }))
        }
    }
}

pub(crate) async fn remove(Path(name): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.send(Method::DELETE, &format!("/v1/categories/{}", part(&name)), None).await.or_error_page(&context)?;
    redirect("/ui/categories?done=removed")
}

async fn servers(context: &PageContext) -> Vec<String> {
    let Modules { modules } = context.get_or_default("/v1/modules").await;
    modules.into_iter().map(|module| module.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_are_told_apart_and_come_back() {
        let draft = CategoryDraft {
            chosen: vec!["a".into(), "b".into()],
            include: "read_file\nlist_*".into(),
            exclude: "/^x/".into(),
            ..CategoryDraft::default()
        };
        let definition = draft.definition().expect("a definition");
        assert_eq!(
            definition,
            json!({ "server": ["a", "b"], "description": "", "tools": {
                "includeNames": ["read_file"], "includePatterns": ["list_*"], "excludePatterns": ["/^x/"] } })
        );
        let read = CategoryDefinition::deserialize(&definition).expect("a definition");
        assert_eq!((read.servers(), read.lines("includeNames", "includePatterns")), (draft.chosen, draft.include));
    }
}

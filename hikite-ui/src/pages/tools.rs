//! A tool: its own and overridden texts, its switch, and a form to try it.

use askama::Template;
use axum::extract::Path;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::modules::risk;
use crate::api::{Refused, part};
use crate::field::{self, Field};
use crate::form::{Fields, Form};
use crate::number;
use crate::page::{Answer, OrTrouble, go, show as page, with_status};
use crate::seat::Seat;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tool {
    key: String,
    name: String,
    module: String,
    title: Option<String>,
    description: String,
    input_schema: Value,
    annotations: Value,
    enabled: bool,
    disabled_reason: Option<String>,
    overrides: Option<Texts>,
    original: Option<Texts>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Texts {
    title: Option<String>,
    description: Option<String>,
}

impl Tool {
    fn risk(&self) -> &'static str {
        risk(&self.annotations)
    }

    fn schema(&self) -> String {
        pretty(&self.input_schema)
    }

    fn own_description(&self) -> &str {
        let own = self.original.as_ref().and_then(|texts| texts.description.as_deref());
        own.unwrap_or(&self.description)
    }

    fn overridden(&self, pick: impl Fn(&Texts) -> Option<&String>) -> &str {
        self.overrides.as_ref().and_then(pick).map_or("", String::as_str)
    }

    fn new_title(&self) -> &str {
        self.overridden(|texts| texts.title.as_ref())
    }

    fn new_description(&self) -> &str {
        self.overridden(|texts| texts.description.as_ref())
    }
}

/// The result of trying a tool.
#[derive(Debug)]
struct Tried {
    raw: String,
    compact: String,
    raw_size: String,
    compact_size: String,
    saved: String,
    ms: String,
    refused: Option<Refused>,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct One<'a> {
    seat: &'a Seat,
    tool: Tool,
    fields: Vec<Field>,
    account: String,
    accounts: Vec<String>,
    tried: Option<Tried>,
}

pub(crate) async fn show(seat: Seat, Path(key): Path<String>) -> Answer {
    let tool = load(&seat, &key).await.or_trouble(&seat)?;
    let fields = field::fields(&tool.input_schema, &Fields::default());
    let accounts = accounts(&seat).await;
    page(&One { seat: &seat, tool, fields, account: String::new(), accounts, tried: None })
}

pub(crate) async fn call(Path(key): Path<String>, Form { seat, fields }: Form) -> Answer {
    let tool = load(&seat, &key).await.or_trouble(&seat)?;
    let tried = attempt(&seat, &tool, &fields).await;
    let status = tried.refused.as_ref().map_or(StatusCode::OK, |refused| refused.status);
    let shown = field::fields(&tool.input_schema, &fields);
    let (account, accounts) = (fields.text("account").to_owned(), accounts(&seat).await);
    let one = One { seat: &seat, tool, fields: shown, account, accounts, tried: Some(tried) };
    Ok(with_status(status, &one))
}

pub(crate) async fn act(Path((key, deed)): Path<(String, String)>, Form { seat, .. }: Form) -> Answer {
    let done = match &*deed {
        "enable" => "enabled",
        "disable" => "disabled",
        _ => return go("/ui/modules"),
    };
    seat.send(Method::POST, &format!("/v1/tools/{}/{deed}", part(&key)), None).await.or_trouble(&seat)?;
    go(&format!("/ui/tools/{}?done={done}", part(&key)))
}

pub(crate) async fn texts(Path(key): Path<String>, Form { seat, fields }: Form) -> Answer {
    let text = |name| fields.some(name).map_or(Value::Null, Value::from);
    let changes = json!({ "title": text("title"), "description": text("description") });
    seat.send(Method::PATCH, &format!("/v1/tools/{}", part(&key)), Some(&changes)).await.or_trouble(&seat)?;
    go(&format!("/ui/tools/{}?done=saved", part(&key)))
}

async fn load(seat: &Seat, key: &str) -> Result<Tool, Refused> {
    seat.get(&format!("/v1/tools/{}", part(key))).await
}

async fn accounts(seat: &Seat) -> Vec<String> {
    let all: super::accounts::Accounts = seat.get_or_default("/v1/accounts").await;
    all.accounts.into_iter().map(|account| account.name).collect()
}

/// Calls the tool once; the API returns both the raw and the compact result.
async fn attempt(seat: &Seat, tool: &Tool, fields: &Fields) -> Tried {
    let mut tried = Tried {
        raw: String::new(),
        compact: String::new(),
        raw_size: String::new(),
        compact_size: String::new(),
        saved: String::new(),
        ms: String::new(),
        refused: None,
    };
    let parameters = match field::arguments(&tool.input_schema, fields) {
        Ok(parameters) => parameters,
        Err(why) => {
            tried.refused = Some(Refused::new(StatusCode::BAD_REQUEST, why));
            return tried;
        }
    };
    let mut options = json!({ "format": "both" });
    if let Some(account) = fields.some("account") {
        options["account"] = Value::from(account);
    }
    let body = json!({ "name": tool.key, "parameters": parameters, "options": options });
    match seat.post("/v1/tools/call", &body).await {
        Ok(answer) => {
            let compact = answer
                .get("compact")
                .map(|compact| compact.as_str().map_or_else(|| pretty(compact), str::to_owned));
            let size = |place| answer.pointer(&format!("/answer/bytes/{place}")).and_then(Value::as_u64);
            tried.raw = pretty(answer.get("result").unwrap_or(&Value::Null));
            tried.compact = compact.unwrap_or_default();
            let told = |bytes: Option<u64>| {
                bytes.map(|bytes| number::bytes(usize::try_from(bytes).unwrap_or(usize::MAX)))
            };
            tried.raw_size = told(size(0)).unwrap_or_default();
            tried.compact_size = told(size(1)).unwrap_or_default();
            if let (Some(raw @ 1..), Some(compact)) = (size(0), size(1)) {
                tried.saved = format!("{} %", 100 - (compact * 100 / raw).min(100));
            }
            tried.ms = answer.get("executionTime").map(Value::to_string).unwrap_or_default();
        }
        Err(refused) => tried.refused = Some(refused),
    }
    tried
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

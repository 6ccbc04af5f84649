//! A tool: its own and overridden texts, its switch, and a form to try it.

use askama::Template;
use axum::extract::Path;
use hikite_api::{Accounts, Tool, ToolTexts};
use hikite_core::json::Raw;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::modules::risk;
use crate::api::{ApiError, part};
use crate::context::PageContext;
use crate::field::{self, Field};
use crate::form::{SubmittedFields, SubmittedForm};
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page, with_status};

/// A tool as text.
trait ToolText {
    fn title_text(&self) -> String;
    fn schema(&self) -> String;
    fn own_description(&self) -> String;
    fn new_title(&self) -> String;
    fn new_description(&self) -> String;
}

impl ToolText for Tool {
    fn title_text(&self) -> String {
        self.title.as_ref().and_then(Raw::text).unwrap_or_else(|| self.name.clone())
    }

    fn schema(&self) -> String {
        pretty(&self.input_schema.value())
    }

    fn own_description(&self) -> String {
        texts_of(self.original.as_ref()).description.unwrap_or_else(|| self.description.clone())
    }

    fn new_title(&self) -> String {
        texts_of(self.overrides.as_ref()).title.unwrap_or_default()
    }

    fn new_description(&self) -> String {
        texts_of(self.overrides.as_ref()).description.unwrap_or_default()
    }
}

fn texts_of(texts: Option<&Raw>) -> ToolTexts {
    texts.and_then(|texts| texts.decode().ok()).unwrap_or_default()
}

/// The result of trying a tool.
#[derive(Debug)]
struct TestCall {
    raw: String,
    compact: String,
    raw_size: String,
    compact_size: String,
    saved: String,
    ms: String,
    refused: Option<ApiError>,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolDetailPage<'a> {
    context: &'a PageContext,
    tool: Tool,
    fields: Vec<Field>,
    account: String,
    accounts: Vec<String>,
    test_call: Option<TestCall>,
}

pub(crate) async fn show(context: PageContext, Path(key): Path<String>) -> PageResult {
    let tool = load(&context, &key).await.or_error_page(&context)?;
    let fields = field::fields(&tool.input_schema.value(), &SubmittedFields::default());
    let accounts = accounts(&context).await;
    page(&ToolDetailPage { context: &context, tool, fields, account: String::new(), accounts, test_call: None })
}

pub(crate) async fn call(Path(key): Path<String>, SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let tool = load(&context, &key).await.or_error_page(&context)?;
    let test_call = attempt(&context, &tool, &fields).await;
    let status = test_call.refused.as_ref().map_or(StatusCode::OK, |refused| refused.status);
    let shown = field::fields(&tool.input_schema.value(), &fields);
    let (account, accounts) = (fields.text("account").to_owned(), accounts(&context).await);
    let one = ToolDetailPage { context: &context, tool, fields: shown, account, accounts, test_call: Some(test_call) };
    Ok(with_status(status, &one))
}

pub(crate) async fn act(
    Path((key, action)): Path<(String, String)>,
    SubmittedForm { context, .. }: SubmittedForm,
) -> PageResult {
    let done = match &*action {
        "enable" => "enabled",
        "disable" => "disabled",
        _ => return redirect("/ui/modules"),
    };
    context.send(Method::POST, &format!("/v1/tools/{}/{action}", part(&key)), None).await.or_error_page(&context)?;
    redirect(&format!("/ui/tools/{}?done={done}", part(&key)))
}

pub(crate) async fn texts(Path(key): Path<String>, SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let text = |name| fields.some(name).map_or(Value::Null, Value::from);
    let changes = json!({ "title": text("title"), "description": text("description") });
    context.send(Method::PATCH, &format!("/v1/tools/{}", part(&key)), Some(&changes)).await.or_error_page(&context)?;
    redirect(&format!("/ui/tools/{}?done=saved", part(&key)))
}

async fn load(context: &PageContext, key: &str) -> Result<Tool, ApiError> {
    context.get(&format!("/v1/tools/{}", part(key))).await
}

async fn accounts(context: &PageContext) -> Vec<String> {
    let Accounts { accounts } = context.get_or_default("/v1/accounts").await;
    accounts.into_iter().map(|account| account.name).collect()
}

/// Calls the tool once; the API returns both the raw and the compact result.
async fn attempt(context: &PageContext, tool: &Tool, fields: &SubmittedFields) -> TestCall {
    let mut test_call = TestCall {
        raw: String::new(),
        compact: String::new(),
        raw_size: String::new(),
        compact_size: String::new(),
        saved: String::new(),
        ms: String::new(),
        refused: None,
    };
    let parameters = match field::arguments(&tool.input_schema.value(), fields) {
        Ok(parameters) => parameters,
        Err(why) => {
            test_call.refused = Some(ApiError::new(
                StatusCode::BAD_REQUEST,
                context.tn("An argument is not valid JSON. Correct it and run again: {}", why),
            ));
            return test_call;
        }
    };
    let mut options = json!({ "format": "both" });
    if let Some(account) = fields.some("account") {
        options["account"] = Value::from(account);
    }
    let body = json!({ "name": tool.key, "parameters": parameters, "options": options });
    match context.post("/v1/tools/call", &body).await {
        Ok(answer) => {
            let compact =
                answer.get("compact").map(|compact| compact.as_str().map_or_else(|| pretty(compact), str::to_owned));
            let size = |place| answer.pointer(&format!("/answer/bytes/{place}")).and_then(Value::as_u64);
            test_call.raw = pretty(answer.get("result").unwrap_or(&Value::Null));
            test_call.compact = compact.unwrap_or_default();
            let told =
                |bytes: Option<u64>| bytes.map(|bytes| number::bytes(usize::try_from(bytes).unwrap_or(usize::MAX)));
            test_call.raw_size = told(size(0)).unwrap_or_default();
            test_call.compact_size = told(size(1)).unwrap_or_default();
            if let (Some(raw @ 1..), Some(compact)) = (size(0), size(1)) {
                test_call.saved = format!("{} %", 100 - (compact * 100 / raw).min(100));
            }
            test_call.ms = answer.get("executionTime").map(Value::to_string).unwrap_or_default();
        }
        Err(refused) => test_call.refused = Some(refused),
    }
    test_call
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

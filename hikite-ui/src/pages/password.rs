//! Changing one's own password.

use askama::Template;
use http::Method;
use serde_json::json;

use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::page::{OrErrorPage, PageResult, redirect, show as page};

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordPage<'a> {
    context: &'a PageContext,
}

pub(crate) async fn show(context: PageContext) -> PageResult {
    page(&PasswordPage { context: &context })
}

pub(crate) async fn change(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let mut body =
        json!({ "password": fields.text("password"), "removePasskeys": fields.is_checked("remove_passkeys") });
    if let Some(current) = fields.some("current") {
        body["current"] = current.into();
    }
    context.send(Method::POST, "/v1/me/password", Some(&body)).await.or_error_page(&context)?;
    redirect("/ui?done=saved")
}

//! Changing one's own password.

use askama::Template;
use hikite_api::OwnPassword;

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
    let password = OwnPassword {
        current: fields.some("current").map(str::to_owned),
        password: fields.text("password").to_owned(),
        remove_passkeys: Some(fields.is_checked("remove_passkeys")),
    };
    context.post("/v1/me/password", &password).await.or_error_page(&context)?;
    redirect("/ui?done=saved")
}

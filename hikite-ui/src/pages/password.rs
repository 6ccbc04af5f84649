//! Changing one's own password.

use askama::Template;
use http::Method;
use serde_json::json;

use crate::form::Form;
use crate::page::{Answer, OrTrouble, go, show as page};
use crate::seat::Seat;

#[derive(Template)]
#[template(path = "password.html")]
struct Password<'a> {
    seat: &'a Seat,
}

pub(crate) async fn show(seat: Seat) -> Answer {
    page(&Password { seat: &seat })
}

pub(crate) async fn change(Form { seat, fields }: Form) -> Answer {
    let mut body = json!({ "password": fields.text("password"), "removePasskeys": fields.is_checked("remove_passkeys") });
    if let Some(current) = fields.some("current") {
        body["current"] = current.into();
    }
    seat.send(Method::POST, "/v1/me/password", Some(&body)).await.or_trouble(&seat)?;
    go("/ui?done=saved")
}

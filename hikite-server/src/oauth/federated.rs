//! Login with an external identity provider: the redirect there and the callback. A cookie proves that the browser that
//! returns is the one that left.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::Response;
use hikite_core::error::Error;
use hikite_gateway::identity::WAS_REMOVED;
use hikite_gateway::{Comeback, Deed, Entrances};
use http::{StatusCode, Uri};

use super::desk::Desk;
use super::fields::{Fields, encode};
use super::form::Binding;
use super::page::{self, Html};
use super::{login, trial, words};
use crate::health;

/// Action name in the audit log.
const LOG_IN: &str = "login.federated";

/// Redirects a browser to the provider.
pub(crate) async fn go(desk: Desk, Path(name): Path<String>, uri: Uri) -> Response {
    let Some(entrances) = entrances(&desk) else { return health::not_found().await };
    match begin(&desk, &entrances, &name, &uri).await {
        Ok(response) => response,
        Err(error) => page::trouble(&desk, &error),
    }
}

async fn begin(desk: &Desk, entrances: &Entrances, name: &str, uri: &Uri) -> Result<Response, Error> {
    trial::begin(desk)?;
    let fields = Fields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let next = fields.get("next").and_then(login::local).unwrap_or_default();
    let binding = Binding::of(desk).await?;
    let callback = callback(desk, name);
    let address = entrances.federation.begin(name, binding.value(), &callback, next).await?;
    Ok(binding.put_on(page::go(&address), desk))
}

/// Handles the callback of the provider.
pub(crate) async fn back(desk: Desk, Path(name): Path<String>, uri: Uri) -> Response {
    let Some(entrances) = entrances(&desk) else { return health::not_found().await };
    match finish(&desk, &entrances, &name, &uri).await {
        Ok(response) => response,
        Err(error) => {
            trial::failed(&desk);
            let known = entrances.federation.names();
            let what = known.iter().find(|known| ***known == *name).map_or("", |known| known);
            let refused = Some(error.kind);
            match desk.note(Deed { action: LOG_IN, what, refused, ..Deed::default() }).await {
                Ok(()) if &*error.message == WAS_REMOVED => {
                    page::notice(&desk, StatusCode::FORBIDDEN, words::TROUBLE, words::REMOVED)
                }
                Ok(()) => page::trouble(&desk, &error),
                Err(error) => page::trouble(&desk, &error),
            }
        }
    }
}

async fn finish(desk: &Desk, entrances: &Entrances, name: &str, uri: &Uri) -> Result<Response, Error> {
    trial::look(desk)?;
    let fields = Fields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let text = |name: &str| fields.get(name).map(ToOwned::to_owned);
    let returned =
        Comeback { state: text("state"), code: text("code"), iss: text("iss"), error: text("error") };
    let binding = Binding::of(desk).await?;
    let callback = callback(desk, name);
    let (stranger, next) = entrances.federation.finish(name, binding.value(), &callback, &returned).await?;
    let user = desk.identity.user_of_stranger(&stranger).await?;
    desk.note(Deed { action: LOG_IN, subject: &user.subject, what: name, ..Deed::default() }).await?;
    let begun = desk.begin_login(&user).await?;
    let next = login::local(&next).unwrap_or("/ui");
    Ok(login::welcome(desk, begun.secret.expose(), next))
}

/// Renders the provider buttons of the login page.
pub(crate) fn links(desk: &Desk, next: Option<&str>) -> Html {
    let names = entrances(desk).map(|entrances| entrances.federation.names()).unwrap_or_default();
    let say = desk.say(words::LOG_IN_WITH);
    names.iter().fold(Html::default(), |page, name| {
        let address = format!("/oauth/federated/{name}?next={}", encode(next.unwrap_or_default()));
        page.marks("<p><a class=\"button second\" href=\"").value(&address).element(
            "\">",
            &say.replace("{}", name),
            "</a></p>\n",
        )
    })
}

pub(crate) fn entrances(desk: &Desk) -> Option<Arc<Entrances>> {
    desk.app.gateway.people().entrances().cloned()
}

/// Returns the callback URL. It is built from our own name, never from request data.
fn callback(desk: &Desk, name: &str) -> String {
    desk.place.at(&format!("/oauth/federated/{name}/callback"))
}

//! The setup page behind the one-time link: creates the owner and logs them in.

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::{Error, Kind};
use hikite_gateway::Deed;
use hikite_gateway::identity::secret;
use http::{StatusCode, Uri};

use super::desk::Desk;
use super::fields::Fields;
use super::form::{self, Binding};
use super::page::{self, Html};
use super::{login, passkey, words};

/// Form value for an owner with a passkey instead of a password.
const PASSKEY: &str = "passkey";

pub(crate) async fn show(desk: Desk, uri: Uri) -> Response {
    let fields = Fields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let token = fields.get("token").unwrap_or_default();
    match desk.identity.is_setup_token(token).await {
        Ok(true) => ask(&desk, StatusCode::OK, token, None).await,
        Ok(false) => over(&desk),
        Err(error) => page::trouble(&desk, &error),
    }
}

pub(crate) async fn set_up(desk: Desk, body: Body) -> Response {
    answer(&desk, body).await.unwrap_or_else(|answer| answer)
}

async fn answer(desk: &Desk, body: Body) -> Result<Response, Response> {
    let fields = form::read(desk, body).await?;
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let (link, name) = (text("link"), text("name").trim().to_lowercase());
    if desk.app.brake.look(desk.peer, &desk.app).is_err() {
        return Err(page::notice(desk, StatusCode::TOO_MANY_REQUESTS, words::SET_UP, words::TOO_OFTEN));
    }
    let by_passkey = text("with") == PASSKEY;
    let password = if by_passkey { nobodys() } else { Ok(text("password").to_owned()) };
    let password = password.map_err(|error| page::trouble(desk, &error))?;
    let user = match desk.identity.set_up(link, &name, &password).await {
        Ok(user) => user,
        Err(error) if error.kind == Kind::Validation => {
            return Err(ask(desk, StatusCode::BAD_REQUEST, link, Some(&error.message)).await);
        }
        Err(error) if error.kind == Kind::Authorization => {
            // Links cannot be guessed, but attempts are throttled all the same.
            let _ = desk.app.brake.note(desk.peer, &desk.app);
            return Err(over(desk));
        }
        Err(error) => return Err(page::trouble(desk, &error)),
    };
    tracing::info!(user = &*user.name, "the owner is set up");
    let trouble = |error: Error| page::trouble(desk, &error);
    let deed = Deed { action: "owner.create", subject: &user.subject, what: &user.name, ..Deed::default() };
    desk.note(deed).await.map_err(trouble)?;
    let login = desk.begin_login(&user).await.map_err(trouble)?;
    let next = if by_passkey { "/oauth/passkey" } else { "/ui/start" };
    Ok(login::welcome(desk, login.secret.expose(), next))
}

/// Returns a random password that nobody knows, so that only a passkey works. `hikite user` can set another one.
fn nobodys() -> Result<String, Error> {
    Ok(secret("")?.expose().to_owned())
}

async fn ask(desk: &Desk, status: StatusCode, link: &str, wrong: Option<&str>) -> Response {
    let say = |words| desk.say(words);
    let binding = match Binding::of(desk).await {
        Ok(binding) => binding,
        Err(error) => return page::trouble(desk, &error),
    };
    let mut body = Html::default().element("<p>", say(words::SET_UP_WHY), "</p>\n");
    if let Some(wrong) = wrong {
        body = body.element("<p class=\"alarm\" role=\"alert\">", wrong, "</p>\n");
    }
    let body = body
        .marks("<form method=\"post\" action=\"/setup\">\n")
        .and(&binding.field())
        .and(&Html::hidden("link", link))
        .and(&login::credentials(desk, "new-password"))
        .element("<p class=\"faint\">", say(words::SET_UP_LONG), "</p>\n")
        .element("<div class=\"choice\"><button>", say(words::SET_UP_GO), "</button>");
    let body = if passkey::can_be(desk) {
        body.marks("<button class=\"second\" name=\"with\" value=\"passkey\" formnovalidate>").element(
            "",
            say(words::SET_UP_PASSKEY),
            "</button>",
        )
    } else {
        body
    };
    let body = body.marks("</div>\n</form>");
    binding.put_on(page::page(status, desk.language, say(words::SET_UP), &body, None), desk)
}

fn over(desk: &Desk) -> Response {
    page::notice(desk, StatusCode::FORBIDDEN, words::SET_UP, words::LINK_OVER)
}

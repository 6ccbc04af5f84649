//! The setup page behind the one-time link: creates the owner and logs them in.

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::language::Language;
use hikite_gateway::AuthEvent;
use hikite_identity::secret;
use hikite_ui::{error_text, sentence};
use http::{StatusCode, Uri};

use super::context::OauthContext;
use super::fields::FormFields;
use super::form::{self, FormBinding};
use super::page::{self, Html};
use super::{login, passkey, text};

/// Form value for an owner with a passkey instead of a password.
const PASSKEY: &str = "passkey";

pub(crate) async fn show(context: OauthContext, uri: Uri) -> Response {
    let fields = FormFields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let token = fields.get("token").unwrap_or_default();
    match context.identity.users().is_setup_token(token).await {
        Ok(true) => show_form(&context, StatusCode::OK, token, None).await,
        Ok(false) => link_expired(&context),
        Err(error) => page::error_page(&context, &error),
    }
}

pub(crate) async fn set_up(context: OauthContext, body: Body) -> Response {
    answer(&context, body).await.unwrap_or_else(|answer| answer)
}

async fn answer(context: &OauthContext, body: Body) -> Result<Response, Response> {
    let fields = form::read(context, body).await?;
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let (link, name) = (text("link"), text("name").trim().to_lowercase());
    if context.app.login_throttle.look(context.peer).is_err() {
        return Err(page::notice(context, StatusCode::TOO_MANY_REQUESTS, text::SET_UP, text::TOO_OFTEN));
    }
    let by_passkey = text("with") == PASSKEY;
    let password = if by_passkey { random_password() } else { Ok(text("password").to_owned()) };
    let password = password.map_err(|error| page::error_page(context, &error))?;
    let user = match context.identity.users().set_up(link, &name, &password).await {
        Ok(user) => user,
        Err(error) if error.kind == ErrorKind::Validation => {
            let message = match context.language {
                Language::English => sentence(&error.message),
                language @ Language::Japanese => {
                    format!("{} {}", error_text(language, error.code()).next_step, sentence(&error.message))
                }
            };
            return Err(show_form(context, StatusCode::BAD_REQUEST, link, Some(&message)).await);
        }
        Err(error) if error.kind == ErrorKind::Authorization => {
            // Links cannot be guessed, but attempts are throttled all the same.
            let _ = context.app.login_throttle.note(context.peer);
            return Err(link_expired(context));
        }
        Err(error) => return Err(page::error_page(context, &error)),
    };
    tracing::info!(user = &*user.name, "the owner is set up");
    let error_page = |error: Error| page::error_page(context, &error);
    let event = AuthEvent { action: "owner.create", subject: &user.subject, what: &user.name, ..AuthEvent::default() };
    context.note(event).await.map_err(error_page)?;
    let login = context.begin_login(&user).await.map_err(error_page)?;
    let next = if by_passkey { "/oauth/passkey" } else { "/ui/start" };
    Ok(login::finish_login(context, login.secret.expose(), next))
}

/// Returns a random password that nobody knows, so that only a passkey works. `hikite user` can set another one.
fn random_password() -> Result<String, Error> {
    Ok(secret("")?.expose().to_owned())
}

async fn show_form(context: &OauthContext, status: StatusCode, link: &str, wrong: Option<&str>) -> Response {
    let say = |words| context.say(words);
    let binding = match FormBinding::of(context).await {
        Ok(binding) => binding,
        Err(error) => return page::error_page(context, &error),
    };
    let mut body = Html::default().element("<p>", say(text::SET_UP_WHY), "</p>\n");
    if let Some(wrong) = wrong {
        body = body.element("<p class=\"alarm\" role=\"alert\">", wrong, "</p>\n");
    }
    let body = body
        .marks("<form method=\"post\" action=\"/setup\">\n")
        .and(&binding.field())
        .and(&Html::hidden("link", link))
        .and(&login::credentials(context, "new-password"))
        .element("<p class=\"faint\">", say(text::SET_UP_LONG), "</p>\n")
        .element("<div class=\"choice\"><button>", say(text::SET_UP_GO), "</button>");
    let body = if passkey::is_available(context) {
        body.marks("<button class=\"second\" name=\"with\" value=\"passkey\" formnovalidate>").element(
            "",
            say(text::SET_UP_PASSKEY),
            "</button>",
        )
    } else {
        body
    };
    let body = body.marks("</div>\n</form>");
    binding.set_cookie(page::page(status, context.language, say(text::SET_UP), &body, None), context)
}

fn link_expired(context: &OauthContext) -> Response {
    page::notice(context, StatusCode::FORBIDDEN, text::SET_UP, text::LINK_OVER)
}

//! Login with an external identity provider: the redirect there and the callback. A cookie proves that the browser that
//! returns is the one that left.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::Response;
use hikite_core::error::Error;
use hikite_gateway::AuthEvent;
use hikite_identity::REMOVED_MESSAGE;
use hikite_identity::{FederationCallback, IdentityProviders};
use http::{StatusCode, Uri};

use super::context::OauthContext;
use super::fields::{FormFields, encode};
use super::form::FormBinding;
use super::page::{self, Html};
use super::{login, text, throttle};
use crate::health;

/// Action name in the audit log.
const LOG_IN: &str = "login.federated";

/// Redirects a browser to the provider.
pub(crate) async fn redirect(context: OauthContext, Path(name): Path<String>, uri: Uri) -> Response {
    let Some(identity_providers) = identity_providers(&context) else { return health::not_found().await };
    match begin(&context, &identity_providers, &name, &uri).await {
        Ok(response) => response,
        Err(error) => page::error_page(&context, &error),
    }
}

async fn begin(
    context: &OauthContext,
    identity_providers: &IdentityProviders,
    name: &str,
    uri: &Uri,
) -> Result<Response, Error> {
    throttle::begin(context)?;
    let fields = FormFields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let next = fields.get("next").and_then(login::allowed_redirect).unwrap_or_default();
    let binding = FormBinding::of(context).await?;
    let callback = callback(context, name);
    let address = identity_providers.federation.begin(name, binding.value(), &callback, next).await?;
    Ok(binding.set_cookie(page::redirect(&address), context))
}

/// Handles the callback of the provider.
pub(crate) async fn handle_callback(context: OauthContext, Path(name): Path<String>, uri: Uri) -> Response {
    let Some(identity_providers) = identity_providers(&context) else { return health::not_found().await };
    match finish(&context, &identity_providers, &name, &uri).await {
        Ok(response) => response,
        Err(error) => {
            throttle::failed(&context);
            let known = identity_providers.federation.names();
            let what = known.iter().find(|known| ***known == *name).map_or("", |known| known);
            let refused = Some(error.kind);
            match context.note(AuthEvent { action: LOG_IN, what, refused, ..AuthEvent::default() }).await {
                Ok(()) if &*error.message == REMOVED_MESSAGE => {
                    page::notice(&context, StatusCode::FORBIDDEN, text::FAILED, text::REMOVED)
                }
                Ok(()) => page::error_page(&context, &error),
                Err(error) => page::error_page(&context, &error),
            }
        }
    }
}

async fn finish(
    context: &OauthContext,
    identity_providers: &IdentityProviders,
    name: &str,
    uri: &Uri,
) -> Result<Response, Error> {
    throttle::look(context)?;
    let fields = FormFields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let text = |name: &str| fields.get(name).map(ToOwned::to_owned);
    let returned =
        FederationCallback { state: text("state"), code: text("code"), iss: text("iss"), error: text("error") };
    let binding = FormBinding::of(context).await?;
    let callback = callback(context, name);
    let (stranger, next) = identity_providers.federation.finish(name, binding.value(), &callback, &returned).await?;
    let user = context.identity.users().of_federated_identity(&stranger).await?;
    context.note(AuthEvent { action: LOG_IN, subject: &user.subject, what: name, ..AuthEvent::default() }).await?;
    let begun = context.begin_login(&user).await?;
    let next = login::allowed_redirect(&next).unwrap_or("/ui");
    Ok(login::finish_login(context, begun.secret.expose(), next))
}

/// Renders the provider buttons of the login page.
pub(crate) fn links(context: &OauthContext, next: Option<&str>) -> Html {
    let names =
        identity_providers(context).map(|identity_providers| identity_providers.federation.names()).unwrap_or_default();
    let say = context.say(text::LOG_IN_WITH);
    names.iter().fold(Html::default(), |page, name| {
        let address = format!("/oauth/federated/{name}?next={}", encode(next.unwrap_or_default()));
        page.marks("<p><a class=\"button second\" href=\"").value(&address).element(
            "\">",
            &say.replace("{}", name),
            "</a></p>\n",
        )
    })
}

pub(crate) fn identity_providers(context: &OauthContext) -> Option<Arc<IdentityProviders>> {
    context.app.gateway.people().identity_providers().cloned()
}

/// Returns the callback URL. It is built from our own name, never from request data.
fn callback(context: &OauthContext, name: &str) -> String {
    context.place.at(&format!("/oauth/federated/{name}/callback"))
}

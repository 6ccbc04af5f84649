//! All routes of the UI. Handlers query the API and render its response or error.

mod access;
mod accounts;
mod audit;
mod batch;
mod categories;
mod home;
mod modules;
mod password;
mod permissions;
mod pins;
mod playground;
mod preferences;
mod projects;
mod start;
mod tools;
mod upstreams;

use axum::Router;
use axum::routing::{get, post};

use crate::api::ApiClient;

pub(crate) fn routes() -> Router<ApiClient> {
    Router::new()
        .route("/ui", get(home::show))
        .route("/ui/preferences", post(preferences::change))
        .route("/ui/start", get(start::show).post(start::import))
        .route("/ui/modules", get(modules::list))
        .route("/ui/modules/{name}", get(modules::show))
        .route("/ui/modules/{name}/{action}", post(modules::act))
        .route("/ui/upstreams", get(upstreams::add).post(upstreams::save))
        .route("/ui/upstreams/{name}", get(upstreams::edit))
        .route("/ui/upstreams/{name}/remove", post(upstreams::remove))
        .route("/ui/tools/{key}", get(tools::show).post(tools::call))
        .route("/ui/tools/{key}/texts", post(tools::texts))
        .route("/ui/tools/{key}/{action}", post(tools::act))
        .route("/ui/categories", get(categories::list).post(categories::save))
        .route("/ui/categories/{name}", get(categories::edit))
        .route("/ui/categories/{name}/remove", post(categories::remove))
        .route("/ui/projects", get(projects::list).post(projects::create))
        .route("/ui/projects/{name}", get(projects::show).post(projects::save))
        .route("/ui/projects/{name}/remove", post(projects::remove))
        .route("/ui/accounts", get(accounts::list).post(accounts::add))
        .route("/ui/accounts/connect", post(accounts::connect))
        .route("/ui/accounts/{id}", get(accounts::show).post(accounts::save))
        .route("/ui/accounts/{id}/remove", post(accounts::remove))
        .route("/ui/accounts/{id}/verify", post(accounts::verify))
        .route("/ui/providers/{name}", get(accounts::app).post(accounts::save_app))
        .route("/ui/providers/{name}/remove", post(accounts::remove_app))
        .route("/ui/playground", get(playground::show))
        .route("/ui/batch", get(batch::show).post(batch::check))
        .route("/ui/batch/run", post(batch::run))
        .route("/ui/pins", get(pins::list))
        .route("/ui/pins/{key}", get(pins::show))
        .route("/ui/pins/{key}/{action}", post(pins::act))
        .route("/ui/audit", get(audit::list))
        .route("/ui/audit/verify", get(audit::verify))
        .route("/ui/audit/export", get(audit::export))
        .route("/ui/audit/resume-trim", post(audit::resume))
        .route("/ui/audit/{id}", get(audit::show))
        .route("/ui/password", get(password::show).post(password::change))
        .route("/ui/access", get(access::list))
        .route("/ui/access/tokens", post(access::make_token))
        .route("/ui/access/users", post(access::make_user))
        .route("/ui/access/{kind}/{id}/{action}", post(access::act))
}

//! The web UI at `/ui`. A client of the REST API like any other: each page is rendered from responses of `/v1` for the
//! user at the browser, and each form ends in a request to it. Has no access to gateway, store or secrets.

mod api;
mod asset;
mod chart;
mod context;
mod error_text;
mod field;
mod form;
mod graph;
mod label;
mod number;
mod page;
mod pages;
mod snippet;
mod visitor;
mod words;

pub use api::ApiClient;
pub use error_text::{ErrorText, error_text, sentence};
pub use visitor::Visitor;

use axum::Router;

/// Returns the routes of all pages. The caller must add a `Visitor` to each request.
pub fn routes(api: ApiClient) -> Router {
    pages::routes().with_state(api)
}

/// Returns the routes of the static assets, which are public.
pub fn assets() -> Router {
    asset::routes()
}

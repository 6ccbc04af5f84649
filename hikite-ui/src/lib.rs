//! The pages at `/ui`. They are a client of the REST API like any other: each is made from what `/v1` answers to the
//! person at the browser, and each form ends in a request to it. Nothing here knows a gateway, a store or a secret.

mod api;
mod asset;
mod chart;
mod field;
mod form;
mod graph;
mod number;
mod page;
mod pages;
mod seat;
mod snippet;
mod visitor;
mod words;

pub use api::Api;
pub use visitor::Visitor;

use axum::Router;

/// All pages. Whoever mounts them sees to it that every request has its `Visitor`.
pub fn routes(api: Api) -> Router {
    pages::routes().with_state(api)
}

/// What they look like and do: the same for everybody, and no secret.
pub fn assets() -> Router {
    asset::routes()
}

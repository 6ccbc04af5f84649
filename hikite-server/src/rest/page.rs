//! The page that displays the OpenAPI document and lets people try it. It loads everything from here; the CSP enforces
//! that.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn html() -> Response {
    part("text/html; charset=utf-8", include_str!("page/page.html"))
}

pub(crate) async fn css() -> Response {
    part("text/css; charset=utf-8", include_str!("page/page.css"))
}

pub(crate) async fn script() -> Response {
    part("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

pub(crate) async fn words() -> Response {
    part("text/javascript; charset=utf-8", include_str!("page/words.js"))
}

fn part(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use hikite_api::document;

    #[test]
    fn every_group_and_operation_has_a_japanese_text() {
        let words = include_str!("page/words.js");
        let (_, japanese) = words.split_once("  ja: {").expect("Japanese texts");
        let document = document();
        let groups = document["tags"].as_array().expect("tags").iter().map(|tag| &tag["name"]);
        let paths = document["paths"].as_object().expect("paths").values();
        let operations = paths.flat_map(|path| path.as_object().expect("a path").values());
        for name in groups.chain(operations.map(|operation| &operation["operationId"])) {
            let name = name.as_str().expect("a name");
            assert!(japanese.contains(&format!(" {name}: \"")), "{name}");
        }
    }
}

//! Links to Confluence content. In Markdown they are URLs with custom schemes, `page:SPACE/Title`, `attachment:name`,
//! `user:id`, which convert back.

use super::super::html::MarkupWalker;
use super::super::markdown::InlineStyle;
use super::super::markup::Element;
use super::element::has_content;

pub(super) fn element(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    let resource = element.elements().find(|child| child.name.starts_with("ri:"));
    let anchor = element.attribute("ac:anchor");
    let mut url = resource.and_then(address).unwrap_or_default();
    if !anchor.is_empty() {
        url.push('#');
        url.push_str(anchor);
    }
    let style = style.to(&url);
    let bodies = ["ac:plain-text-link-body", "ac:link-body"];
    let body = element.elements().find(|child| bodies.contains(&child.name.as_str()));
    match (body.filter(|body| has_content(&body.children)), resource) {
        (Some(body), Some(resource)) if resource.name == "ri:user" => {
            // The `@` marks it as a user when converted back.
            if !body.text().trim_start().starts_with('@') {
                walk.text("@", &style);
            }
            walk.nodes(&body.children, &style);
        }
        (Some(body), _) => walk.nodes(&body.children, &style),
        (None, Some(resource)) => walk.text(&label(resource), &style),
        (None, None) => walk.text(anchor, &style),
    }
}

/// Writes a resource outside a link.
pub(super) fn resource(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    let style = style.to(&address(element).unwrap_or_default());
    walk.text(&label(element), &style);
}

/// Returns the custom URL of a resource, which converts back.
pub(super) fn address(resource: &Element) -> Option<String> {
    let of = |name: &str| Some(resource.attribute(name)).filter(|value| !value.is_empty());
    match resource.name.as_str() {
        "ri:url" => of("ri:value").map(str::to_owned),
        "ri:attachment" => Some(format!("attachment:{}", of("ri:filename")?)),
        "ri:user" => Some(format!("user:{}", user(resource)?)),
        "ri:page" => {
            let title = escape(of("ri:content-title")?);
            Some(match of("ri:space-key") {
                Some(space) => format!("page:{space}/{title}"),
                None => format!("page:{title}"),
            })
        }
        "ri:blog-post" => {
            let title = escape(of("ri:content-title")?);
            Some(format!(
                "blog:{}/{}/{title}",
                resource.attribute("ri:space-key"),
                resource.attribute("ri:posting-day").replace('/', "-")
            ))
        }
        "ri:space" => Some(format!("space:{}", of("ri:space-key")?)),
        "ri:content-entity" => Some(format!("content:{}", of("ri:content-id")?)),
        _ => None,
    }
}

fn user(resource: &Element) -> Option<&str> {
    let names = ["ri:account-id", "ri:userkey", "ri:username"];
    names.iter().map(|name| resource.attribute(name)).find(|value| !value.is_empty())
}

fn label(resource: &Element) -> String {
    match resource.name.as_str() {
        "ri:user" => format!("@{}", user(resource).unwrap_or("unknown")),
        _ => {
            let names = ["ri:content-title", "ri:filename", "ri:value", "ri:space-key", "ri:content-id"];
            let label = names.iter().map(|name| resource.attribute(name)).find(|value| !value.is_empty());
            label.unwrap_or(&resource.name).to_owned()
        }
    }
}

/// Escapes the separators in a title.
fn escape(title: &str) -> String {
    title.replace('%', "%25").replace('/', "%2F").replace('#', "%23")
}

pub(super) fn unescape(title: &str) -> String {
    title.replace("%23", "#").replace("%2F", "/").replace("%25", "%")
}

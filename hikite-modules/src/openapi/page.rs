//! Guesses the pagination style from the names of parameters and response members.

use serde_json::{Map, Value, json};

use super::list::ResponseSchema;
use super::name::snake;
use super::parameter::{OperationParameter, ParameterLocation};
use super::schema::{SchemaResolver, is_scalar, kind};
use super::yaml::below;

const CURSORS: [&str; 11] = [
    "cursor",
    "page_token",
    "next_page_token",
    "starting_after",
    "start_cursor",
    "after",
    "next_token",
    "continuation_token",
    "next_cursor",
    "marker",
    "pagination_token",
];
const OFFSETS: [&str; 6] = ["offset", "start_at", "start", "skip", "start_index", "first_result"];
const PAGES: [&str; 4] = ["page", "page_number", "page_no", "page_num"];
const SIZES: [&str; 10] =
    ["limit", "per_page", "page_size", "max_results", "top", "count", "size", "max", "page_limit", "first"];
const NEXTS: [&str; 8] = [
    "next_cursor",
    "next_page_token",
    "next_token",
    "continuation_token",
    "end_cursor",
    "cursor",
    "next_page",
    "next_marker",
];
const MORES: [&str; 5] = ["has_more", "has_next", "has_next_page", "more", "is_truncated"];
const LASTS: [&str; 2] = ["is_last", "last_page"];
const TOTALS: [&str; 4] = ["total", "total_count", "total_results", "total_items"];
/// Members that contain pagination metadata.
const METADATA_MEMBERS: [&str; 7] =
    ["meta", "paging", "pagination", "page_info", "response_metadata", "links", "cursors"];

/// Default page size.
const DEFAULT: u64 = 30;
const MAX: u64 = 100;

#[derive(Debug)]
pub(super) struct PaginationGuess {
    /// Pagination style as written in the module file.
    pub(super) way: Value,
    pub(super) default: u64,
    /// Parameters replaced by pagination, by their API names.
    pub(super) taken: Vec<(ParameterLocation, String)>,
}

pub(super) fn guess(
    parameters: &[OperationParameter],
    answer: &ResponseSchema,
    schemas: SchemaResolver<'_>,
) -> Option<PaginationGuess> {
    let ResponseSchema::Object { schema, list: Some(list), has_next_link } = answer else { return None };
    let find = |names: &[&str]| {
        let candidates = parameters
            .iter()
            .filter(|parameter| matches!(parameter.location, ParameterLocation::Query | ParameterLocation::Body));
        let mut candidates: Vec<_> = candidates.filter(|parameter| is_scalar(&parameter.schema)).collect();
        candidates.sort_by_key(|parameter| names.iter().position(|name| *name == snake(&parameter.wire, 40)));
        candidates.into_iter().find(|parameter| names.contains(&snake(&parameter.wire, 40).as_str()))
    };
    let find_member = |names: &[&str]| member(schema, names, schemas);
    let (cursor, offset, page, size) = (find(&CURSORS), find(&OFFSETS), find(&PAGES), find(&SIZES));
    let mut way = Map::new();
    let at = if *has_next_link && (page.is_some() || cursor.is_some()) {
        way.insert("style".into(), json!("link"));
        page.or(cursor)
    } else if let Some(next) = cursor.and_then(|cursor| next_of(cursor, &list.path, &find_member)) {
        let cursor = cursor?;
        way.insert("style".into(), json!("cursor"));
        if cursor.location == ParameterLocation::Body {
            way.insert("in".into(), json!("body"));
        }
        way.insert("cursor".into(), json!(cursor.wire));
        way.insert("next".into(), json!(next));
        way.extend(find_member(&MORES).map(|path| ("more".to_owned(), json!(path))));
        Some(cursor)
    } else if let Some(link) = link_of(schema) {
        way.insert("style".into(), json!("body_link"));
        way.insert("next".into(), json!(link));
        offset.or(page).or(cursor)
    } else if let Some(offset) = offset.filter(|_| size.is_some()) {
        way.insert("style".into(), json!("offset"));
        way.insert("offset".into(), json!(offset.wire));
        way.extend(find_member(&TOTALS).map(|path| ("total".to_owned(), json!(path))));
        way.extend(find_member(&LASTS).map(|path| ("last".to_owned(), json!(path))));
        Some(offset)
    } else {
        let page = page?;
        way.insert("style".into(), json!("page"));
        way.insert("page".into(), json!(page.wire));
        Some(page)
    };
    let size = size.filter(|size| at.is_none_or(|at| at.location == size.location && at.wire != size.wire));
    let most = size.and_then(|size| size.schema.get("maximum")?.as_u64()).filter(|most| *most > 0);
    if let Some(size) = size {
        way.insert("size".into(), json!(size.wire));
        way.insert("max".into(), json!(most.unwrap_or(MAX)));
    }
    way.insert("items".into(), json!(list.path));
    let taken = at.into_iter().chain(size).map(|parameter| (parameter.location, parameter.wire.clone())).collect();
    Some(PaginationGuess { way: Value::Object(way), default: DEFAULT.min(most.unwrap_or(MAX)), taken })
}

/// Returns the expression of the next cursor. For `starting_after` it is the id of the last item.
fn next_of(
    cursor: &OperationParameter,
    list: &str,
    find_member: &impl Fn(&[&str]) -> Option<String>,
) -> Option<String> {
    if let Some(next) = find_member(&NEXTS) {
        return Some(next);
    }
    let list = if list == "." { "" } else { list };
    (snake(&cursor.wire, 40) == "starting_after")
        .then(|| format!("{}[-1].id", if list.is_empty() { "." } else { list }))
}

/// Returns the member with the next link.
fn link_of(schema: &Map<String, Value>) -> Option<String> {
    let members = schema.get("properties")?.as_object()?;
    let name =
        ["@odata.nextLink", "nextLink", "next_link", "next_url"].into_iter().find(|name| members.contains_key(*name));
    name.map(|name| below(".", name))
}

/// Returns the path of a scalar member with one of these names, in the response or its pagination metadata.
fn member(schema: &Map<String, Value>, names: &[&str], schemas: SchemaResolver<'_>) -> Option<String> {
    let direct = |members: &Map<String, Value>, path: &str| {
        names.iter().find_map(|wanted| {
            let is_it = |(name, schema): &(&String, &Value)| {
                let schema = schemas.merged(schema);
                snake(name, 40) == **wanted && kind(&schema).is_none_or(|kind| !matches!(kind, "object" | "array"))
            };
            members.iter().find(is_it).map(|(name, _)| below(path, name))
        })
    };
    let members = schema.get("properties")?.as_object()?;
    direct(members, ".").or_else(|| {
        let around = members.iter().filter(|(name, _)| METADATA_MEMBERS.contains(&snake(name, 40).as_str()));
        around.into_iter().find_map(|(name, inside)| {
            let inside = schemas.merged(inside);
            direct(inside.get("properties")?.as_object()?, &below(".", name))
        })
    })
}

//! Tests that no input makes a converter panic.

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::super::{adf, html, notion, storage};
use super::generate::text;

/// Generates values with the member names of services.
fn json() -> impl Strategy<Value = Value> {
    let name = || {
        prop::sample::select(vec![
            "type",
            "text",
            "content",
            "attrs",
            "marks",
            "children",
            "rich_text",
            "paragraph",
            "table",
            "table_row",
            "cells",
            "to_do",
            "callout",
            "icon",
            "emoji",
            "caption",
            "results",
            "heading_1",
            "code",
            "language",
            "plain_text",
            "mention",
            "user",
            "id",
            "url",
            "panel",
            "bulletList",
            "listItem",
            "taskList",
            "taskItem",
            "media",
            "mediaSingle",
            "level",
            "order",
            "colspan",
            "timestamp",
            "image",
            "external",
            "column_list",
        ])
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            hash_map(name(), inner, 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

fn markup() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        text(),
        prop::sample::select(vec![
            "<p>",
            "</p>",
            "<ul>",
            "<li>",
            "</ul>",
            "<ol start='7'>",
            "<table>",
            "<tr>",
            "<td colspan=9>",
            "<th>",
            "</table>",
            "<pre>",
            "</pre>",
            "<a href=\"x\">",
            "</a>",
            "<details>",
            "<summary>",
            "</details>",
            "<![CDATA[",
            "]]>",
            "<!--",
            "-->",
            "<script>",
            "</script>",
            "<style>",
            "<ac:structured-macro ac:name=\"code\">",
            "<ac:structured-macro ac:name=\"expand\">",
            "<ac:structured-macro ac:name=\"x\">",
            "</ac:structured-macro>",
            "<ac:parameter ac:name=\"title\">",
            "</ac:parameter>",
            "<ac:plain-text-body>",
            "</ac:plain-text-body>",
            "<ac:rich-text-body>",
            "</ac:rich-text-body>",
            "<ac:link>",
            "<ri:page ri:content-title=\"x\"/>",
            "</ac:link>",
            "<ac:image>",
            "<ri:attachment ri:filename='f'/>",
            "</ac:image>",
            "<ac:task-list>",
            "<ac:task>",
            "<ac:task-body>",
            "</ac:task>",
            "<input type=checkbox",
            "<img src=x alt=\"",
            "\"",
            "'",
            ">",
            "<h1>",
            "</h1>",
            "<blockquote>",
            "<br/>",
            "<hr>",
            "<?x",
            "<!d",
            "&#x;",
            "&#99999999;",
            "&nbsp;",
        ])
        .prop_map(str::to_owned),
    ];
    vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn no_value_is_too_strange(value in json()) {
        notion::to_markdown(&value);
        adf::to_markdown(&value);
    }

    #[test]
    fn no_markup_is_too_broken(markup in markup()) {
        html::to_markdown(&markup);
        storage::to_markdown(&markup);
        from_markdown(&markup);
    }

    #[test]
    fn no_text_is_too_wild(text in any::<String>()) {
        html::to_markdown(&text);
        storage::to_markdown(&text);
        from_markdown(&text);
    }
}

fn from_markdown(text: &str) {
    notion::from_markdown(text);
    adf::from_markdown(text);
    storage::from_markdown(text);
}

//! Tests with a description that covers all features, and the module file generated from it.

use std::path::Path;

use super::{ApiDescription, OperationFilter};
use crate::module::tests::settings;
use crate::{ModuleReview, review};

const LIBRARY: &str = include_str!("tests/library.yaml");

fn description() -> ApiDescription {
    ApiDescription::read(LIBRARY).expect("a description")
}

#[track_caller]
fn reviewed(text: &str) -> ModuleReview {
    review(text, &settings()).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

#[test]
fn what_is_made_is_what_was_looked_through() {
    let description = description();
    let operations = description.operations();
    let text = description.module(&description.name(), &operations.iter().collect::<Vec<_>>());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openapi/tests/library.module.yaml");
    if std::env::var_os("HIKITE_UPDATE").is_some() {
        std::fs::write(&file, &text).expect("a file");
    }
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, before, "another file is made: look at it, and run with HIKITE_UPDATE=1");
    let review = reviewed(&text);
    assert_eq!((&*review.service.name, review.service.risks()), ("library", [5, 2, 1]));
}

#[test]
fn operations_are_chosen_by_id_tag_or_path() {
    let description = description();
    let operations = description.operations();
    let check = |choice: OperationFilter, expected: &[&str]| {
        let chosen = choice.of(&operations).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(chosen.iter().map(|operation| operation.name.as_str()).collect::<Vec<_>>(), expected);
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    check(
        OperationFilter { operations: ids(&["books/list-all", "get_book"]), ..OperationFilter::default() },
        &["books_list_all", "get_book"],
    );
    check(OperationFilter { tag: Some("loans".into()), ..OperationFilter::default() }, &["list_loans"]);
    check(
        OperationFilter { path: Some("/books/{".into()), ..OperationFilter::default() },
        &["get_book", "delete_books_book_id", "get_text"],
    );
    let wrong = |choice: OperationFilter| choice.of(&operations).err().unwrap_or_default();
    assert_eq!(
        wrong(OperationFilter { operations: ids(&["getBok"]), ..OperationFilter::default() }),
        "there is no operation `getBok`\nhint: Did you mean `getBook`?"
    );
    assert_eq!(
        wrong(OperationFilter { tag: Some("loan".into()), ..OperationFilter::default() }),
        "no operation has the tag `loan`\nhint: Did you mean `loans`?"
    );
    assert_eq!(
        wrong(OperationFilter { path: Some("/x".into()), ..OperationFilter::default() }),
        "no path begins with `/x`"
    );
}

#[test]
fn what_is_no_description_is_refused() {
    for (text, said) in [
        ("{\"openapi\": ", "it is no JSON: EOF while parsing a value at line 1 column 12"),
        ("swagger: '2.0'", "this is Swagger 2; turn it into OpenAPI 3 first"),
        ("a: 1", "this is no OpenAPI 3 description: it needs `openapi: 3.…` and `paths`"),
    ] {
        assert_eq!(ApiDescription::read(text).err().as_deref(), Some(said));
    }
}

#[test]
fn a_schema_without_end_comes_to_one() {
    let text = r##"{"openapi":"3.0.0","info":{},"paths":{"/a":{"post":{"requestBody":{"content":{"application/json":
        {"schema":{"$ref":"#/components/schemas/A"}}}},"responses":{"200":{"content":{"application/json":{"schema":
        {"$ref":"#/components/schemas/B"}}}}}}}},"components":{"schemas":{"A":{"type":"object","properties":{"a":
        {"$ref":"#/components/schemas/A"},"all":{"allOf":[{"$ref":"#/components/schemas/A"}]}}},"B":{"$ref":
        "#/components/schemas/B"}}}}"##;
    let description = ApiDescription::read(text).expect("a description");
    let operations = description.operations();
    reviewed(&description.module("endless", &operations.iter().collect::<Vec<_>>()));
}

//! Tests of the `projects` section: valid entries, and the message for each mistake.

use hikite_identity::Optimization;
use serde_json::json;

use super::{loaded, refused, show};

#[test]
fn a_project_is_read_as_it_is_made_elsewhere() {
    let text = json!({ "projects": {
        "work": { "description": "d", "members": ["alice"], "surface": "direct", "optimization": null,
                  "permissions": { "allow": ["m", { "module": "n", "risk": "read" }], "deny": ["*:delete_*"] } },
        "home": {},
    } });
    let config = loaded(&text.to_string());
    let [work, home] = &config.projects[..] else { panic!("{config:?}") };
    assert!(work.managed_by_file && home.managed_by_file);
    assert_eq!((work.optimization, home.optimization), (Some(Optimization::Off), None), "null says something");
    let shown = show(&config);
    assert_eq!(shown["projects"]["work"]["surface"], json!(["direct"]));
    assert_eq!(show(&loaded(&shown.to_string()))["projects"], shown["projects"], "what is shown loads again");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    refused(
        "{ \"projects\": { \"work\": {\n  \"optimisation\": \"bm25\" } } }",
        "error: hikite.json:2:3: projects.work.optimisation: unknown key\nhint: Did you mean `optimization`?",
    );
    refused(
        "{ \"projects\": { \"work\": {\n  \"optimization\": \"bm26\" } } }",
        "error: hikite.json:2:19: projects.work.optimization: `bm26` is not a known value\nhint: Did you mean `bm25`?",
    );
    refused(
        "{ \"projects\": { \"work\": { \"permissions\": {\n  \"allows\": [] } } } }",
        "error: hikite.json:2:3: projects.work.permissions.allows: unknown key\nhint: Did you mean `allow`?",
    );
    let of = |text: &str| super::load(text).expect_err(text).to_string();
    let said = of("{ \"projects\": { \"work\": { \"permissions\": { \"deny\": [\n \"ok\",\n \"/(/\"] } } } }");
    assert!(said.contains("hikite.json:3:2: projects.work.permissions.deny[1]: "), "{said}");
    let said = of("{ \"projects\": {\n \"a b\": {} } }");
    assert!(said.contains("hikite.json:2:") && said.contains("A project name may contain"), "{said}");
}

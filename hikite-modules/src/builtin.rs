//! Built-in modules.

#[cfg(test)]
mod page;

/// Module files by name, in display order.
pub const BUILTIN: [(&str, &str); 7] = [
    ("notion", include_str!("../modules/notion.yaml")),
    ("github", include_str!("../modules/github.yaml")),
    ("jira", include_str!("../modules/jira.yaml")),
    ("confluence", include_str!("../modules/confluence.yaml")),
    ("supabase", include_str!("../modules/supabase.yaml")),
    ("google_calendar", include_str!("../modules/google_calendar.yaml")),
    ("microsoft_todo", include_str!("../modules/microsoft_todo.yaml")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::TextLanguage;
    use crate::module::Service;
    use crate::module::tests::settings;

    /// Checks the verification request of each module against the vendor's own API description.
    #[test]
    fn every_service_proves_a_credential_at_an_address_that_its_vendor_describes() {
        let described = [
            ("notion", "notion", "", "/v1/users/me"),
            ("github", "github", "", "/user"),
            ("jira", "jira", "", "/rest/api/3/myself"),
            ("confluence", "confluence-v2", "/wiki/api/v2", "/spaces"),
            ("supabase", "supabase", "", "/v1/organizations"),
            ("google_calendar", "google_calendar", "", "/users/me/calendarList"),
            ("microsoft_todo", "microsoft_todo", "", "/me/todo/lists"),
        ];
        for ((name, file), (of, api, base, path)) in BUILTIN.into_iter().zip(described) {
            assert_eq!(name, of);
            let service = Service::read(file, &settings()).expect("a service");
            assert_eq!(service.verification_path().as_deref(), Some(&*format!("{base}{path}")), "{name}");
            let at = format!("{}/../tests/contract/apis/{api}.json", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&at).unwrap_or_else(|error| panic!("{at}: {error}"));
            let description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert!(description["paths"][path]["get"].is_object(), "{name}: {path}");
        }
    }

    #[test]
    fn there_are_111_tools_and_every_program_compiles() {
        let expected = [15, 24, 14, 13, 18, 12, 15];
        for ((name, file), count) in BUILTIN.into_iter().zip(expected) {
            let service = Service::read(file, &settings()).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
            assert_eq!(service.compile_errors(), [], "{name}");
            assert_eq!((&*service.name, service.about(TextLanguage::English).count()), (name, count));
        }
    }
}

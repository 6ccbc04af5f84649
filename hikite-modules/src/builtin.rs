//! The services that come with hikite.

#[cfg(test)]
mod page;

/// Their files by name, in the order in which they are shown.
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
    use crate::file::Language;
    use crate::module::Service;
    use crate::module::tests::settings;

    #[test]
    fn there_are_111_tools_and_every_program_compiles() {
        let expected = [15, 24, 14, 13, 18, 12, 15];
        for ((name, file), count) in BUILTIN.into_iter().zip(expected) {
            let service =
                Service::read(file, &settings()).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
            assert_eq!(service.problems(), [], "{name}");
            assert_eq!((&*service.name, service.about(Language::English).count()), (name, count));
        }
    }
}

//! Projects: members, permissions, surfaces and search settings. The config, the store, the REST API and the CLI
//! share one document format.

use std::collections::BTreeMap;
use std::sync::Arc;

use hikite_core::compact::AnswerFormat;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::suggestion;
use hikite_core::surface::{Surface, Surfaces};
use hikite_core::violation::{self, Violation};

const MEMBERS: [&str; 7] = ["description", "members", "permissions", "accounts", "surface", "optimization", "format"];
const NAME_CHARS: usize = 128;
const DESCRIPTION_CHARS: usize = 2000;
const PEOPLE: usize = 1000;

/// Projects by name.
pub type ProjectMap = BTreeMap<Arc<str>, Arc<Project>>;

#[derive(Clone, Debug)]
pub struct Project {
    pub name: Arc<str>,
    pub description: String,
    /// Subjects of the members.
    pub members: Vec<Arc<str>>,
    pub permissions: Arc<Permissions>,
    /// Default account by provider.
    pub accounts: BTreeMap<String, String>,
    /// Surfaces that callers may choose from, and get by default; `None` uses the config's.
    pub surfaces: Option<Surfaces>,
    /// `None` uses the config's setting.
    pub optimization: Option<Optimization>,
    /// Default result format; `None` returns results as the tools do.
    pub format: Option<AnswerFormat>,
    /// Defined in the config file, and only changed there.
    pub managed_by_file: bool,
    /// Creation time in milliseconds since 1970; `None` for projects of the config file.
    pub created_at: Option<u64>,
    /// The stored document, used for compare-and-swap.
    pub stored_document: Option<Raw>,
}

/// Search strategy of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimization {
    /// No search: an explicit `null`.
    Off,
    Bm25,
    Hybrid,
    Cloud,
}

impl Optimization {
    const NAMED: [Self; 3] = [Self::Bm25, Self::Hybrid, Self::Cloud];

    /// Returns the name in documents; `None` for `Off`.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::Bm25 => Some("bm25"),
            Self::Hybrid => Some("hybrid"),
            Self::Cloud => Some("cloud"),
        }
    }

    fn parse(raw: &Raw) -> Option<Self> {
        if raw.is_null() {
            return Some(Self::Off);
        }
        let word = raw.text()?;
        Self::NAMED.into_iter().find(|named| named.name() == Some(&word))
    }
}

impl Project {
    /// Reads a document and reports all faults at once.
    pub fn read(name: &str, form: &Object) -> Result<Self, Error> {
        let mut reader = ProjectReader { form, faults: Vec::new() };
        let project = reader.project(name);
        if reader.faults.is_empty() { Ok(project) } else { Err(violation::error(&reader.faults)) }
    }

    pub fn form(&self) -> Object {
        let members: Vec<&str> = self.members.iter().map(|member| &**member).collect();
        let mut form = Object::default()
            .with("description", self.description.as_str())
            .with("members", Raw::of(&members))
            .with("permissions", self.permissions.form());
        if !self.accounts.is_empty() {
            form.set("accounts", Raw::of(&self.accounts));
        }
        if let Some(surfaces) = self.surfaces {
            form.set("surface", Raw::of(&surfaces.names()));
        }
        if let Some(optimization) = self.optimization {
            form.set("optimization", Raw::of(&optimization.name()));
        }
        if let Some(format) = self.format {
            form.set("format", format.name());
        }
        form
    }
}

/// Returns `true` if the name is valid; it is part of URLs.
fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS).contains(&name.chars().count()) && name.chars().all(fine) && !name.starts_with('.')
}

struct ProjectReader<'a> {
    form: &'a Object,
    faults: Vec<Violation>,
}

impl<'a> ProjectReader<'a> {
    fn project(&mut self, name: &str) -> Project {
        if !is_name(name) {
            let message = format!(
                "A project name may contain letters, digits, `-`, `_` and `.`, and at most {NAME_CHARS} \
                 characters: `{name}`."
            );
            self.faults.push(Violation::new("", message));
        }
        for member in self.form.unknown(&MEMBERS) {
            let near = suggestion::did_you_mean(member, MEMBERS);
            let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
            self.faults.push(Violation::new(violation::step(member), format!("Unknown member `{member}`.{hint}")));
        }
        Project {
            name: name.into(),
            description: self.description(),
            members: self.members(),
            permissions: Arc::new(self.permissions()),
            accounts: self.accounts(),
            surfaces: self.surfaces(),
            optimization: self.optimization(),
            format: self.format(),
            managed_by_file: false,
            created_at: None,
            stored_document: None,
        }
    }

    fn description(&mut self) -> String {
        let Some(value) = self.value("description") else { return String::new() };
        let text = value.text().filter(|text| text.chars().count() <= DESCRIPTION_CHARS);
        self.or_fault(text, "description", || {
            format!("`description` must be a string of at most {DESCRIPTION_CHARS} characters.")
        })
    }

    fn members(&mut self) -> Vec<Arc<str>> {
        let Some(value) = self.value("members") else { return Vec::new() };
        let fine =
            |members: &Vec<String>| members.len() <= PEOPLE && members.iter().all(|member| !member.trim().is_empty());
        let members = value.decode::<Vec<String>>().ok().filter(fine);
        let members =
            self.or_fault(members, "members", || format!("`members` must be a list of at most {PEOPLE} names."));
        members.into_iter().map(Arc::from).collect()
    }

    fn permissions(&mut self) -> Permissions {
        let Some(value) = self.value("permissions") else { return Permissions::default() };
        crate::blocking::run_blocking(|| Permissions::read(value)).unwrap_or_else(|faults| {
            let inside = |fault: Violation| Violation::new(format!("/permissions{}", fault.pointer), fault.message);
            self.faults.extend(faults.into_iter().map(inside));
            Permissions::default()
        })
    }

    /// Reads the default accounts by provider.
    fn accounts(&mut self) -> BTreeMap<String, String> {
        let Some(value) = self.value("accounts") else { return BTreeMap::new() };
        let accounts = value.decode::<BTreeMap<String, String>>().ok().filter(|all| all.len() <= PEOPLE);
        self.or_fault(accounts, "accounts", || {
            "`accounts` must be an object with the name of an account for each provider.".to_owned()
        })
    }

    /// Reads one surface name or a list.
    fn surfaces(&mut self) -> Option<Surfaces> {
        let value = self.value("surface")?;
        let names = value.text().map(|name| vec![name]).or_else(|| value.decode::<Vec<String>>().ok());
        let parsed: Option<Vec<Surface>> =
            names.and_then(|names| names.iter().map(|name| Surface::parse(name)).collect());
        let parsed = parsed.filter(|surfaces| !surfaces.is_empty());
        if parsed.is_none() {
            let known = Surface::ALL.map(Surface::name).join("`, `");
            let message = format!("`surface` must be one or more of `{known}`.");
            self.faults.push(Violation::new("/surface", message));
        }
        parsed.map(Surfaces::of)
    }

    /// Reads the only member where `null` has a meaning.
    fn optimization(&mut self) -> Option<Optimization> {
        let value = self.form.get("optimization")?;
        let parsed = Optimization::parse(value);
        if parsed.is_none() {
            let message = "`optimization` must be null, `bm25`, `hybrid` or `cloud`.";
            self.faults.push(Violation::new("/optimization", message));
        }
        parsed
    }

    fn format(&mut self) -> Option<AnswerFormat> {
        let parsed = self.value("format")?.text().and_then(|word| AnswerFormat::parse(&word));
        if parsed.is_none() {
            let known = AnswerFormat::ALL.map(|(name, _)| name).join("` or `");
            self.faults.push(Violation::new("/format", format!("`format` must be `{known}`.")));
        }
        parsed
    }

    fn value(&self, member: &str) -> Option<&'a Raw> {
        self.form.get(member).filter(|value| !value.is_null())
    }

    fn or_fault<T: Default>(&mut self, read: Option<T>, member: &str, message: impl Fn() -> String) -> T {
        read.unwrap_or_else(|| {
            self.faults.push(Violation::new(violation::step(member), message()));
            T::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Object {
        Raw::parse(text.to_owned()).expect("valid JSON").object().expect("an object")
    }

    #[test]
    fn a_form_is_read_and_written_back() {
        let stored_document = r#"{"description":"d","members":["alice"],"permissions":{"deny":["git:push"]},"surface":["direct"],"optimization":null,"format":"compact"}"#;
        let project = Project::read("home-2", &form(stored_document)).expect("a project");
        assert_eq!(project.optimization, Some(Optimization::Off));
        assert_eq!(project.surfaces, Some(Surfaces::of([Surface::Direct])));
        assert_eq!(project.format, Some(AnswerFormat::Compact));
        assert_eq!(project.form().raw().as_str(), stored_document);
        let empty = Project::read("p", &form("{}")).expect("a project");
        assert!(empty.permissions.is_unrestricted());
        assert_eq!((empty.surfaces, empty.optimization, empty.format), (None, None, None));
        assert!(empty.form().get("optimization").is_none(), "what was not said is not said");
        let hybrid = Project::read("p", &form(r#"{"optimization":"hybrid"}"#)).expect("a project");
        assert_eq!(hybrid.optimization, Some(Optimization::Hybrid));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let wrong = r#"{"member":[],"description":1,"members":[""],"permissions":{"deny":["risk:all"]},"surface":[],"optimization":"fast","format":"short"}"#;
        let error = Project::read("a/b", &form(wrong)).expect_err("faults");
        let faults = error.details.expect("details").items().expect("a list");
        let pointers: Vec<String> = faults.iter().filter_map(|fault| fault.object()?.text("pointer")).collect();
        let expected =
            ["", "/member", "/description", "/members", "/permissions/deny/0", "/surface", "/optimization", "/format"];
        assert_eq!(pointers, expected);
        assert!(error.message.contains("Did you mean `members`?"), "{}", error.message);
        for name in ["", ".", "..", "a b", "a/b", "?"] {
            assert!(Project::read(name, &Object::default()).is_err(), "{name:?}");
        }
    }
}

//! A project: a boundary with members, in which some tools are allowed, some surfaces are shown and searches are made in
//! one way. One form for the config, the store, REST and the command line.

use std::collections::BTreeMap;
use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::compact::Format;
use hikite_core::error::{Error, Kind};
use hikite_core::fault::{self, Fault};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::suggest;

use crate::gateway::Gateway;
use crate::surface::{Surface, Surfaces};

const MEMBERS: [&str; 7] =
    ["description", "members", "permissions", "accounts", "surface", "optimization", "format"];
const NAME_CHARS: usize = 128;
const DESCRIPTION_CHARS: usize = 2000;
const PEOPLE: usize = 1000;

#[derive(Clone, Debug)]
pub struct Project {
    pub name: Arc<str>,
    pub description: String,
    /// Subjects that belong to it.
    pub members: Vec<Arc<str>>,
    pub permissions: Arc<Permissions>,
    /// Which account is used with a provider, where a call does not say.
    pub accounts: BTreeMap<String, String>,
    /// The surfaces that its callers may choose among, and get if they choose none; `None` leaves it to the settings.
    pub surfaces: Option<Surfaces>,
    /// `None`: not said.
    pub optimization: Option<Optimization>,
    /// In which form results are given where a call does not say; `None`: as the tools give them.
    pub format: Option<Format>,
    /// Whether the config file names it, and alone may change it.
    pub managed_by_file: bool,
    /// When it was made, in milliseconds since 1970; those of the file have always been there.
    pub created_at: Option<u64>,
    /// The form as the store has it, which a change has to name.
    pub written: Option<Raw>,
}

/// How tools are searched for in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimization {
    /// Not at all: an explicit null.
    Off,
    Bm25,
    Hybrid,
    Cloud,
}

impl Optimization {
    const NAMED: [Self; 3] = [Self::Bm25, Self::Hybrid, Self::Cloud];

    /// `None` where nothing is searched.
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
    /// Reads a form; what is wrong is told all at once.
    pub fn read(name: &str, form: &Object) -> Result<Self, Error> {
        let mut reader = Reader { form, faults: Vec::new() };
        let project = reader.project(name);
        if reader.faults.is_empty() { Ok(project) } else { Err(fault::error(&reader.faults)) }
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

impl Gateway {
    /// The project that a caller works in, if there is such a one.
    pub fn project_of(&self, caller: &Caller) -> Option<Arc<Project>> {
        self.snapshot().project_of(caller).cloned()
    }

    /// Which surfaces a caller is shown: those it asks for, if its project has them all, else its project's own, else
    /// those of the settings.
    pub fn surfaces_for(
        &self,
        caller: &Caller,
        asked: Option<Surfaces>,
        default: Surfaces,
    ) -> Result<Surfaces, Error> {
        let own = self.snapshot().project_of(caller).and_then(|project| project.surfaces);
        match (asked, own) {
            (None, own) => Ok(own.unwrap_or(default)),
            (Some(asked), None) => Ok(asked),
            (Some(asked), Some(own)) if asked.is_within(own) => Ok(asked),
            (Some(asked), Some(own)) => {
                let asked = asked.names().join(",");
                Err(Error::new(Kind::Authorization, format!("`surface={asked}` is not open to this project"))
                    .hint(format!("leave it out, or choose among: {}", own.names().join(", "))))
            }
        }
    }
}

/// Whether a project may be called this: it stands in addresses.
fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS).contains(&name.chars().count()) && name.chars().all(fine) && !name.starts_with('.')
}

struct Reader<'a> {
    form: &'a Object,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    fn project(&mut self, name: &str) -> Project {
        if !is_name(name) {
            let message = format!(
                "a project's name must be letters, digits, `-`, `_` and `.`, at most {NAME_CHARS}: `{name}`"
            );
            self.faults.push(Fault::new("", message));
        }
        for member in self.form.unknown(&MEMBERS) {
            let near = suggest::did_you_mean(member, MEMBERS);
            let hint = near.map(|near| format!(": {near}")).unwrap_or_default();
            self.faults.push(Fault::new(fault::step(member), format!("Unknown member `{member}`{hint}")));
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
            written: None,
        }
    }

    fn description(&mut self) -> String {
        let Some(given) = self.given("description") else { return String::new() };
        let text = given.text().filter(|text| text.chars().count() <= DESCRIPTION_CHARS);
        self.or_fault(text, "description", || {
            format!("`description` must be a string of at most {DESCRIPTION_CHARS} characters")
        })
    }

    fn members(&mut self) -> Vec<Arc<str>> {
        let Some(given) = self.given("members") else { return Vec::new() };
        let fine = |members: &Vec<String>| {
            members.len() <= PEOPLE && members.iter().all(|member| !member.trim().is_empty())
        };
        let members = given.decode::<Vec<String>>().ok().filter(fine);
        let members = self
            .or_fault(members, "members", || format!("`members` must be a list of at most {PEOPLE} names"));
        members.into_iter().map(Arc::from).collect()
    }

    fn permissions(&mut self) -> Permissions {
        let Some(given) = self.given("permissions") else { return Permissions::default() };
        crate::aside::aside(|| Permissions::read(given)).unwrap_or_else(|faults| {
            let inside = |fault: Fault| Fault::new(format!("/permissions{}", fault.pointer), fault.message);
            self.faults.extend(faults.into_iter().map(inside));
            Permissions::default()
        })
    }

    /// By provider.
    fn accounts(&mut self) -> BTreeMap<String, String> {
        let Some(given) = self.given("accounts") else { return BTreeMap::new() };
        let accounts = given.decode::<BTreeMap<String, String>>().ok().filter(|all| all.len() <= PEOPLE);
        self.or_fault(accounts, "accounts", || {
            "`accounts` must be an object: the name of an account for each provider".to_owned()
        })
    }

    /// One name or several.
    fn surfaces(&mut self) -> Option<Surfaces> {
        let given = self.given("surface")?;
        let names = given.text().map(|name| vec![name]).or_else(|| given.decode::<Vec<String>>().ok());
        let parsed: Option<Vec<Surface>> =
            names.and_then(|names| names.iter().map(|name| Surface::parse(name)).collect());
        let parsed = parsed.filter(|surfaces| !surfaces.is_empty());
        if parsed.is_none() {
            let known = Surface::ALL.map(Surface::name).join("`, `");
            let message = format!("`surface` must be one or more of `{known}`");
            self.faults.push(Fault::new("/surface", message));
        }
        parsed.map(Surfaces::of)
    }

    /// The only member whose null says something.
    fn optimization(&mut self) -> Option<Optimization> {
        let given = self.form.get("optimization")?;
        let parsed = Optimization::parse(given);
        if parsed.is_none() {
            let message = "`optimization` must be null, `bm25`, `hybrid` or `cloud`";
            self.faults.push(Fault::new("/optimization", message));
        }
        parsed
    }

    fn format(&mut self) -> Option<Format> {
        let parsed = self.given("format")?.text().and_then(|word| Format::parse(&word));
        if parsed.is_none() {
            let known = Format::ALL.map(|(name, _)| name).join("` or `");
            self.faults.push(Fault::new("/format", format!("`format` must be `{known}`")));
        }
        parsed
    }

    fn given(&self, member: &str) -> Option<&'a Raw> {
        self.form.get(member).filter(|value| !value.is_null())
    }

    fn or_fault<T: Default>(&mut self, read: Option<T>, member: &str, message: impl Fn() -> String) -> T {
        read.unwrap_or_else(|| {
            self.faults.push(Fault::new(fault::step(member), message()));
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
        let written = r#"{"description":"d","members":["alice"],"permissions":{"deny":["git:push"]},"surface":["direct"],"optimization":null,"format":"compact"}"#;
        let project = Project::read("home-2", &form(written)).expect("a project");
        assert_eq!(project.optimization, Some(Optimization::Off));
        assert_eq!(project.surfaces, Some(Surfaces::of([Surface::Direct])));
        assert_eq!(project.format, Some(Format::Compact));
        assert_eq!(project.form().raw().as_str(), written);
        let empty = Project::read("p", &form("{}")).expect("a project");
        assert!(empty.permissions.is_everything());
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
        let pointers: Vec<String> =
            faults.iter().filter_map(|fault| fault.object()?.text("pointer")).collect();
        let expected = [
            "",
            "/member",
            "/description",
            "/members",
            "/permissions/deny/0",
            "/surface",
            "/optimization",
            "/format",
        ];
        assert_eq!(pointers, expected);
        assert!(error.message.contains("did you mean `members`?"), "{}", error.message);
        for name in ["", ".", "..", "a b", "a/b", "?"] {
            assert!(Project::read(name, &Object::default()).is_err(), "{name:?}");
        }
    }
}

//! Reader of the JSON for users as admins write it. Reports all faults at once.

use std::sync::Arc;

use hikite_core::caller::OWNER;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::secret::Secret;
use hikite_core::suggestion;
use hikite_core::violation::{self, Violation};

use super::{ID, Role};

const MEMBERS: [&str; 7] = ["name", "role", "password", "permissions", "disabled", "project", "removePasskeys"];
const NAME_CHARS: usize = 64;
const PROJECT_CHARS: usize = 128;

/// Returns `true` for a valid user name.
pub(crate) fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_lowercase() || c.is_numeric() || c.is_alphabetic() && !c.is_uppercase();
    let sign = |c: char| matches!(c, '-' | '_' | '.' | '@');
    (1..=NAME_CHARS).contains(&name.chars().count())
        && name.chars().all(|c| fine(c) || sign(c))
        && name.starts_with(fine)
        // People may type their name in upper case when they log in.
        && name.to_lowercase() == name
}

/// A change to an optional member.
#[derive(Clone)]
pub(super) enum OptionalChange<T> {
    Unchanged,
    None,
    Set(T),
}

impl<T> OptionalChange<T> {
    pub(super) fn over(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Unchanged => before,
            Self::None => None,
            Self::Set(new) => Some(new),
        }
    }
}

pub(super) struct UserReader<'a> {
    form: &'a Object,
    faults: Vec<Violation>,
}

impl<'a> UserReader<'a> {
    pub(super) fn new(form: &'a Object) -> Self {
        Self { form, faults: Vec::new() }
    }

    pub(super) fn name(&mut self) -> String {
        let name = self.form.text("name").unwrap_or_default();
        if !is_name(&name) {
            self.fault(
                "name",
                "`name` may contain lowercase letters, digits, `-`, `_`, `.` and `@`, and at most 64 characters.",
            );
        } else if name == OWNER || name.starts_with(ID) {
            self.fault("name", format!("`{OWNER}` and names that begin with `{ID}` are reserved."));
        }
        name
    }

    /// Reads a new name, if the request contains one.
    pub(super) fn new_name(&mut self) -> Option<String> {
        self.form.get("name").is_some().then(|| self.name())
    }

    /// Reads the only project that the user may work in; null clears it.
    pub(super) fn project(&mut self) -> OptionalChange<Arc<str>> {
        let Some(given) = self.form.get("project") else { return OptionalChange::Unchanged };
        if given.is_null() {
            return OptionalChange::None;
        }
        let fits = |text: &String| (1..=PROJECT_CHARS).contains(&text.chars().count()) && !text.contains('\0');
        let Some(project) = given.text().filter(fits) else {
            self.fault("project", "`project` must be the name of a project.");
            return OptionalChange::Unchanged;
        };
        OptionalChange::Set(project.into())
    }

    pub(super) fn role(&mut self) -> Option<Role> {
        let given = self.given("role")?;
        let role = given.text().and_then(|word| Role::parse(&word));
        if role.is_none() {
            self.fault("role", "`role` must be `admin` or `member`.");
        }
        role
    }

    pub(super) fn password(&mut self) -> Option<Secret> {
        let given = self.given("password")?;
        let Some(text) = given.text() else {
            self.fault("password", "`password` must be a string.");
            return None;
        };
        if let Some(fault) = crate::identity::password::fault(&text) {
            self.fault("password", fault);
        }
        Some(Secret::hidden(text))
    }

    pub(super) fn mask(&mut self) -> OptionalChange<Arc<Permissions>> {
        let Some(given) = self.form.get("permissions") else { return OptionalChange::Unchanged };
        if given.is_null() {
            return OptionalChange::None;
        }
        match crate::blocking::run_blocking(|| Permissions::read(given)) {
            Ok(permissions) => OptionalChange::Set(Arc::new(permissions)),
            Err(faults) => {
                let inside = |fault: Violation| Violation::new(format!("/permissions{}", fault.pointer), fault.message);
                self.faults.extend(faults.into_iter().map(inside));
                OptionalChange::Unchanged
            }
        }
    }

    pub(super) fn flag(&mut self, member: &str) -> Option<bool> {
        let given = self.given(member)?.decode().ok();
        if given.is_none() {
            self.fault(member, format!("`{member}` must be true or false."));
        }
        given
    }

    fn given(&self, member: &str) -> Option<Raw> {
        self.form.get(member).filter(|value| !value.is_null()).cloned()
    }

    pub(super) fn fault(&mut self, member: &str, message: impl Into<String>) {
        self.faults.push(Violation::new(violation::step(member), message));
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        let form = self.form;
        for member in form.unknown(&MEMBERS) {
            let near = suggestion::did_you_mean(member, MEMBERS);
            let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
            self.fault(member, format!("Unknown member `{member}`.{hint}"));
        }
        if self.faults.is_empty() { Ok(()) } else { Err(violation::error(&self.faults)) }
    }
}

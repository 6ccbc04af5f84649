//! Parses tool registrations. REST, the command line, the config and Rust code share this document format.

use std::sync::Arc;
use std::time::Duration;

use crate::call_policy::{CallPolicy, RetryPolicy, ToolMetadata};
use crate::catalog::schema_of;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::source::ToolHandler;
use crate::suggestion;
use crate::violation::{self, Violation};

/// Module of tools that name no module.
pub const MODULE: &str = "registered";
const FIRST_VERSION: &str = "1.0.0";
const WORD_CHARS: usize = 128;
const LIST_ITEMS: usize = 64;

const MEMBERS: &[&str] = &[
    "name",
    "description",
    "title",
    "module",
    "parameters",
    "inputSchema",
    "outputSchema",
    "annotations",
    "version",
    "tags",
    "category",
    "author",
    "examples",
    "dependencies",
    "timeout",
    "retry",
    "retryDelay",
    "cacheTtl",
    "http",
    "overwrite",
    "enabled",
];

/// Builds an HTTP tool from the `http` member and the schema of its registration, or reports all violations.
pub type HttpToolBuilder = Arc<dyn Fn(&Raw, &Raw) -> Result<Arc<dyn ToolHandler>, Vec<Violation>> + Send + Sync>;

/// A validated registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRegistration {
    pub key: ToolKey,
    /// Definition as clients see it.
    pub definition: Raw,
    pub about: Arc<ToolMetadata>,
    /// HTTP request that implements the tool, if any.
    pub http: Option<Raw>,
    pub overwrite: bool,
    pub enabled: bool,
}

impl ToolRegistration {
    /// Parses a registration. Reports all violations at once.
    pub fn read(form: &Object) -> Result<Self, Error> {
        let mut reader = RegistrationReader { form, faults: Vec::new() };
        let registration = reader.registration();
        if reader.faults.is_empty() {
            return Ok(registration);
        }
        Err(violation::error(&reader.faults))
    }

    pub fn schema(&self) -> Raw {
        schema_of(&self.definition).unwrap_or_else(Raw::empty_object)
    }

    /// Adds annotations to the definition unless they are set already.
    pub fn annotate(&mut self, hints: &Object) {
        let Some(definition) = self.definition.object() else { return };
        let mut annotations = definition.get("annotations").and_then(Raw::object).unwrap_or_default();
        for (name, value) in hints.iter() {
            if annotations.get(name).is_none() {
                annotations.set(name, value.clone());
            }
        }
        if !annotations.is_empty() {
            self.definition = definition.with("annotations", annotations).raw();
        }
    }
}

/// Returns the conflict error for a name that is already registered.
pub fn name_conflict(name: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("Tool \"{name}\" is already registered"))
        .hint("Send `overwrite: true` to replace it, or choose another name.")
}

struct RegistrationReader<'a> {
    form: &'a Object,
    faults: Vec<Violation>,
}

impl RegistrationReader<'_> {
    fn registration(&mut self) -> ToolRegistration {
        let name = self.name();
        let description = self.word("description", usize::MAX).unwrap_or_default();
        if description.trim().is_empty() && !self.has_violation("description") {
            self.fault("description", "Tool description is required");
        }
        let module = self.module();
        self.unknown_members();
        let mut definition = Object::default().with("name", name.as_str());
        if let Some(title) = self.word("title", WORD_CHARS) {
            definition.set("title", title);
        }
        definition.set("description", description);
        definition.set("inputSchema", self.schema());
        for member in ["outputSchema", "annotations"] {
            if let Some(value) = self.object(member) {
                definition.set(member, value);
            }
        }
        ToolRegistration {
            key: ToolKey::new(module, name),
            definition: definition.raw(),
            about: Arc::new(self.about()),
            http: self.object("http"),
            overwrite: self.flag("overwrite", false),
            enabled: self.flag("enabled", true),
        }
    }

    fn name(&mut self) -> String {
        let name = self.word("name", WORD_CHARS).unwrap_or_default();
        if self.has_violation("name") {
            return name;
        }
        if name.trim().is_empty() {
            self.fault("name", "Tool name is required");
        } else if !is_name(&name) {
            self.fault(
                "name",
                "Tool name must start with lowercase letter and contain only lowercase letters, numbers, and hyphens",
            );
        }
        name
    }

    fn module(&mut self) -> String {
        let module = self.word("module", WORD_CHARS).unwrap_or_else(|| MODULE.into());
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if module.is_empty() || !module.chars().all(fine) {
            self.fault("module", "Module name must consist of letters, numbers, hyphens and underscores");
        }
        module
    }

    /// Reads the input schema from `inputSchema` or from the `parameters` shorthand.
    fn schema(&mut self) -> Raw {
        let (schema, parameters) = (self.object("inputSchema"), self.present("parameters"));
        match (schema, parameters) {
            (Some(_), Some(_)) => {
                self.fault("parameters", "Give either `parameters` or `inputSchema`, not both");
                Raw::empty_object()
            }
            (Some(schema), None) => self.checked_schema(schema),
            (None, Some(parameters)) => match crate::parameter::schema(&parameters) {
                Ok(schema) => schema,
                Err(faults) => {
                    let inside =
                        |fault: Violation| Violation::new(format!("/parameters{}", fault.pointer), fault.message);
                    self.faults.extend(faults.into_iter().map(inside));
                    Raw::empty_object()
                }
            },
            (None, None) => Object::default().with("type", "object").raw(),
        }
    }

    fn checked_schema(&mut self, schema: Raw) -> Raw {
        let kind = schema.object().and_then(|schema| schema.get("type").and_then(Raw::text));
        if kind.as_deref() != Some("object") {
            self.fault("inputSchema", "`inputSchema` must be a JSON Schema of type `object`.");
        } else if let Some(problem) = crate::check::ArgumentChecker::new(Some(schema.clone())).find_problem() {
            self.fault("inputSchema", format!("`inputSchema` is not a valid JSON Schema: {problem}."));
        }
        schema
    }

    fn about(&mut self) -> ToolMetadata {
        ToolMetadata {
            version: Some(self.word("version", WORD_CHARS).unwrap_or_else(|| FIRST_VERSION.into()).into()),
            tags: self.words("tags"),
            category: self.word("category", WORD_CHARS).map(Arc::from),
            author: self.word("author", WORD_CHARS).map(Arc::from),
            examples: self.examples(),
            dependencies: self.words("dependencies"),
            policy: self.policy(),
        }
    }

    fn policy(&mut self) -> CallPolicy {
        let timeout = self.milliseconds("timeout");
        if timeout == Some(Duration::ZERO) {
            self.fault("timeout", "`timeout` must be greater than zero.");
        }
        let delay = self.milliseconds("retryDelay").unwrap_or(RetryPolicy::DELAY);
        let attempts = self.count("retry").filter(|attempts| *attempts > 0);
        CallPolicy {
            timeout,
            retry: attempts.map(|attempts| RetryPolicy { attempts, delay }),
            cache: self.milliseconds("cacheTtl"),
        }
    }

    fn examples(&mut self) -> Vec<Raw> {
        let Some(present) = self.present("examples") else { return Vec::new() };
        let items = present.items().unwrap_or_default();
        let fine = |item: &Raw| {
            item.object().is_some_and(|example| {
                example.text("description").is_some() && example.get("parameters").is_some_and(Raw::is_object)
            })
        };
        if present.items().is_none() || items.len() > LIST_ITEMS || !items.iter().all(fine) {
            self.fault("examples", "`examples` must be a list of {description, parameters, expectedResult?}.");
        }
        items
    }

    fn unknown_members(&mut self) {
        for name in self.form.unknown(MEMBERS) {
            let near = suggestion::did_you_mean(name, MEMBERS.iter().copied());
            let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
            self.faults.push(Violation::new(violation::step(name), format!("Unknown member `{name}`.{hint}")));
        }
    }

    fn fault(&mut self, member: &str, message: impl Into<String>) {
        self.faults.push(Violation::new(violation::step(member), message));
    }

    fn has_violation(&self, member: &str) -> bool {
        self.faults.iter().any(|fault| fault.pointer == violation::step(member))
    }

    /// Returns a member that is present and not null.
    fn present(&self, member: &str) -> Option<Raw> {
        self.form.get(member).filter(|value| !value.is_null()).map(Raw::copied)
    }

    fn word(&mut self, member: &str, longest: usize) -> Option<String> {
        let present = self.present(member)?;
        match present.text() {
            Some(text) if text.chars().count() <= longest => return Some(text),
            Some(_) => self.fault(member, format!("`{member}` must not be longer than {longest} characters.")),
            None => self.fault(member, format!("`{member}` must be a string.")),
        }
        None
    }

    fn words(&mut self, member: &str) -> Vec<Arc<str>> {
        let Some(present) = self.present(member) else { return Vec::new() };
        match present.decode::<Vec<String>>() {
            Ok(words) if words.len() <= LIST_ITEMS && words.iter().all(|word| !word.trim().is_empty()) => {
                return words.into_iter().map(Arc::from).collect();
            }
            _ => self.fault(member, format!("`{member}` must be a list of at most {LIST_ITEMS} words.")),
        }
        Vec::new()
    }

    fn object(&mut self, member: &str) -> Option<Raw> {
        let present = self.present(member)?;
        if !present.is_object() {
            self.fault(member, format!("`{member}` must be an object."));
            return None;
        }
        Some(present)
    }

    fn flag(&mut self, member: &str, default: bool) -> bool {
        match self.present(member).map(|present| present.decode::<bool>()) {
            None => default,
            Some(Ok(flag)) => flag,
            Some(Err(_)) => {
                self.fault(member, format!("`{member}` must be true or false."));
                default
            }
        }
    }

    fn count(&mut self, member: &str) -> Option<u32> {
        let count = self.present(member)?.whole();
        if count.is_none() {
            self.fault(member, format!("`{member}` must be an integer of at least 0."));
        }
        count
    }

    fn milliseconds(&mut self, member: &str) -> Option<Duration> {
        self.count(member).map(|ms| Duration::from_millis(ms.into()))
    }
}

/// Returns `true` if the name matches `^[a-z][a-z0-9-]*$`.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

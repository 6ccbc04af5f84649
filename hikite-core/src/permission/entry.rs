//! One entry of a permission list. All its conditions must hold.

use std::sync::Arc;

use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::pattern::Pattern;
use crate::risk::Risk;
use crate::suggestion;
use crate::violation::{self, Violation};

use super::MODULE_WILDCARD;

const MEMBERS: [&str; 4] = ["module", "tool", "pattern", "risk"];
/// Longest name or pattern, in bytes.
const LONGEST: usize = 500;
const RISK: &str = "risk:";

#[derive(Clone, Debug, Default)]
pub(super) struct PermissionEntry {
    module: Option<NameMatcher>,
    tool: Option<NameMatcher>,
    /// Matches the whole `module:tool` key.
    pattern: Option<Pattern>,
    risk: Option<Risk>,
}

#[derive(Clone, Debug)]
enum NameMatcher {
    Exact(Arc<str>),
    Pattern(Pattern),
}

impl PermissionEntry {
    /// Parses a string (`module`, `module:tool`, a glob of either, `/…/` over the key, `risk:…`) or an object whose
    /// members must all match.
    pub(super) fn read(raw: &Raw) -> Result<Self, Vec<Violation>> {
        if let Some(text) = raw.text() {
            return Self::of_text(&text).map_err(|message| vec![Violation::new("", message)]);
        }
        match raw.object() {
            Some(members) => Self::of_members(&members),
            None => Err(vec![Violation::new("", "An entry must be a string or an object.")]),
        }
    }

    /// Parses an exact `module:tool` key.
    pub(super) fn of_tool(key: &str) -> Result<Self, Vec<Violation>> {
        if key.starts_with('/') || !key.contains(':') {
            return Err(vec![Violation::new("", format!("`{key}` must have the form `module:tool`."))]);
        }
        Self::of_key(key).map_err(|message| vec![Violation::new("", message)])
    }

    pub(super) fn matches(&self, key: &ToolKey, risk: Risk) -> bool {
        self.risk.is_none_or(|named| named == risk) && self.matches_at_any_risk(key)
    }

    /// Returns `true` if the entry covers a whole module.
    pub(super) fn covers_module(&self, whole: &ToolKey) -> bool {
        self.risk.is_none() && self.matches_at_any_risk(whole)
    }

    /// Returns `true` if some tool of the module could match. A pattern over keys counts as a possible match.
    pub(super) fn may_match_in(&self, module: &str) -> bool {
        self.module.as_ref().is_none_or(|named| named.matches(module))
    }

    fn matches_at_any_risk(&self, key: &ToolKey) -> bool {
        self.module.as_ref().is_none_or(|named| named.matches(&key.module))
            && self.tool.as_ref().is_none_or(|named| named.matches(&key.tool))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&key.to_string()))
    }

    fn of_text(text: &str) -> Result<Self, String> {
        if let Some(word) = text.strip_prefix(RISK) {
            return Ok(Self { risk: Some(risk(word)?), ..Self::default() });
        }
        if text.starts_with('/') {
            return Ok(Self { pattern: Some(pattern(text)?), ..Self::default() });
        }
        Self::of_key(text)
    }

    fn of_key(text: &str) -> Result<Self, String> {
        let (module, tool) = text.split_once(':').unwrap_or((text, MODULE_WILDCARD));
        let tool = if tool == MODULE_WILDCARD { None } else { Some(NameMatcher::read(tool)?) };
        Ok(Self { module: Some(NameMatcher::read(module)?), tool, ..Self::default() })
    }

    fn of_members(members: &Object) -> Result<Self, Vec<Violation>> {
        let mut entry = Self::default();
        let mut faults = Vec::new();
        // Reading stops early: a few unknown members are enough to reject the entry.
        for (member, value) in members.iter().take(2 * MEMBERS.len()) {
            let text = || value.text().ok_or_else(|| format!("`{member}` must be a string."));
            let read = match member {
                "module" => text().and_then(|text| NameMatcher::read(&text)).map(|name| entry.module = Some(name)),
                "tool" => text().and_then(|text| NameMatcher::read(&text)).map(|name| entry.tool = Some(name)),
                "pattern" => text().and_then(|text| pattern(&text)).map(|found| entry.pattern = Some(found)),
                "risk" => text().and_then(|text| risk(&text)).map(|found| entry.risk = Some(found)),
                _ => {
                    let near = suggestion::did_you_mean(member, MEMBERS);
                    let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
                    Err(format!("Unknown member `{member}`.{hint}"))
                }
            };
            faults.extend(read.err().map(|message| Violation::new(violation::step(member), message)));
        }
        if members.is_empty() {
            faults.push(Violation::new("", format!("An entry must have one of `{}`.", MEMBERS.join("`, `"))));
        }
        if faults.is_empty() { Ok(entry.split()) } else { Err(faults) }
    }

    /// Splits `{"tool": "module:tool"}` into module and tool.
    fn split(self) -> Self {
        let (None, Some(NameMatcher::Exact(key))) = (&self.module, &self.tool) else { return self };
        match key.split_once(':') {
            Some((module, tool)) => {
                let (module, tool) = (NameMatcher::Exact(module.into()), NameMatcher::Exact(tool.into()));
                Self { module: Some(module), tool: Some(tool), ..self }
            }
            None => self,
        }
    }
}

impl NameMatcher {
    fn read(text: &str) -> Result<Self, String> {
        let is_pattern = text.starts_with('/') || text.contains(['*', '?', '[', '{']);
        if is_pattern { pattern(text).map(Self::Pattern) } else { Ok(Self::Exact(bounded(text)?.into())) }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(own) => **own == *name,
            Self::Pattern(pattern) => pattern.matches(name),
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(bounded(text)?).map_err(|error| error.to_string())
}

fn bounded(text: &str) -> Result<&str, String> {
    match text.len() {
        0 => Err("A name must not be empty.".into()),
        1..=LONGEST => Ok(text),
        _ => Err(format!("A name must not be longer than {LONGEST} bytes.")),
    }
}

fn risk(word: &str) -> Result<Risk, String> {
    let names = Risk::ALL.map(Risk::name);
    Risk::parse(word).ok_or_else(|| {
        let near = suggestion::did_you_mean(word, names);
        let hint = near.unwrap_or_else(|| format!("Use one of `{}`.", names.join("`, `")));
        format!("Unknown risk `{word}`. {hint}")
    })
}

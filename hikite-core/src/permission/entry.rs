//! One entry of a permission list. All its conditions must hold.

use std::sync::Arc;

use crate::fault::{self, Fault};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::pattern::Pattern;
use crate::risk::Risk;
use crate::suggest;

use super::WHOLE;

const MEMBERS: [&str; 4] = ["module", "tool", "pattern", "risk"];
/// Longest name or pattern, in bytes.
const LONGEST: usize = 500;
const RISK: &str = "risk:";

#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    module: Option<Name>,
    tool: Option<Name>,
    /// Matches the whole `module:tool` key.
    pattern: Option<Pattern>,
    risk: Option<Risk>,
}

#[derive(Clone, Debug)]
enum Name {
    Exact(Arc<str>),
    Like(Pattern),
}

impl Entry {
    /// Parses a string (`module`, `module:tool`, a glob of either, `/…/` over the key, `risk:…`) or an object whose
    /// members must all match.
    pub(super) fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        if let Some(text) = raw.text() {
            return Self::of_text(&text).map_err(|message| vec![Fault::new("", message)]);
        }
        match raw.object() {
            Some(members) => Self::of_members(&members),
            None => Err(vec![Fault::new("", "an entry must be a string or an object")]),
        }
    }

    /// Parses an exact `module:tool` key.
    pub(super) fn of_tool(key: &str) -> Result<Self, Vec<Fault>> {
        if key.starts_with('/') || !key.contains(':') {
            return Err(vec![Fault::new("", format!("`{key}` must be written as `module:tool`"))]);
        }
        Self::of_key(key).map_err(|message| vec![Fault::new("", message)])
    }

    pub(super) fn fits(&self, key: &ToolKey, risk: Risk) -> bool {
        self.risk.is_none_or(|named| named == risk) && self.fits_at_any_risk(key)
    }

    /// Returns `true` if the entry covers a whole module.
    pub(super) fn covers(&self, whole: &ToolKey) -> bool {
        self.risk.is_none() && self.fits_at_any_risk(whole)
    }

    /// Returns `true` if some tool of the module could match. A pattern over keys counts as a possible match.
    pub(super) fn may_fit_in(&self, module: &str) -> bool {
        self.module.as_ref().is_none_or(|named| named.means(module))
    }

    fn fits_at_any_risk(&self, key: &ToolKey) -> bool {
        self.module.as_ref().is_none_or(|named| named.means(&key.module))
            && self.tool.as_ref().is_none_or(|named| named.means(&key.tool))
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
        let (module, tool) = text.split_once(':').unwrap_or((text, WHOLE));
        let tool = if tool == WHOLE { None } else { Some(Name::read(tool)?) };
        Ok(Self { module: Some(Name::read(module)?), tool, ..Self::default() })
    }

    fn of_members(members: &Object) -> Result<Self, Vec<Fault>> {
        let mut entry = Self::default();
        let mut faults = Vec::new();
        // Reading stops early: a few unknown members are enough to reject the entry.
        for (member, value) in members.iter().take(2 * MEMBERS.len()) {
            let text = || value.text().ok_or_else(|| format!("`{member}` must be a string"));
            let read = match member {
                "module" => text().and_then(|text| Name::read(&text)).map(|name| entry.module = Some(name)),
                "tool" => text().and_then(|text| Name::read(&text)).map(|name| entry.tool = Some(name)),
                "pattern" => text().and_then(|text| pattern(&text)).map(|found| entry.pattern = Some(found)),
                "risk" => text().and_then(|text| risk(&text)).map(|found| entry.risk = Some(found)),
                _ => {
                    let near = suggest::did_you_mean(member, MEMBERS);
                    let hint = near.map(|near| format!(": {near}")).unwrap_or_default();
                    Err(format!("Unknown member `{member}`{hint}"))
                }
            };
            faults.extend(read.err().map(|message| Fault::new(fault::step(member), message)));
        }
        if members.is_empty() {
            faults.push(Fault::new("", format!("an entry must say one of `{}`", MEMBERS.join("`, `"))));
        }
        if faults.is_empty() { Ok(entry.split()) } else { Err(faults) }
    }

    /// Splits `{"tool": "module:tool"}` into module and tool.
    fn split(self) -> Self {
        let (None, Some(Name::Exact(key))) = (&self.module, &self.tool) else { return self };
        match key.split_once(':') {
            Some((module, tool)) => {
                let (module, tool) = (Name::Exact(module.into()), Name::Exact(tool.into()));
                Self { module: Some(module), tool: Some(tool), ..self }
            }
            None => self,
        }
    }
}

impl Name {
    fn read(text: &str) -> Result<Self, String> {
        let is_pattern = text.starts_with('/') || text.contains(['*', '?', '[', '{']);
        if is_pattern { pattern(text).map(Self::Like) } else { Ok(Self::Exact(bounded(text)?.into())) }
    }

    fn means(&self, name: &str) -> bool {
        match self {
            Self::Exact(own) => **own == *name,
            Self::Like(pattern) => pattern.matches(name),
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(bounded(text)?).map_err(|error| error.to_string())
}

fn bounded(text: &str) -> Result<&str, String> {
    match text.len() {
        0 => Err("a name must not be empty".into()),
        1..=LONGEST => Ok(text),
        _ => Err(format!("a name must not be longer than {LONGEST} bytes")),
    }
}

fn risk(word: &str) -> Result<Risk, String> {
    let names = Risk::ALL.map(Risk::name);
    Risk::parse(word).ok_or_else(|| {
        let near = suggest::did_you_mean(word, names);
        let hint = near.unwrap_or_else(|| format!("one of `{}`", names.join("`, `")));
        format!("there is no risk `{word}`: {hint}")
    })
}

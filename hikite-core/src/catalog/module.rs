//! Modules, tools and prompts as a catalog holds them.

use std::sync::Arc;

use crate::call_policy::{CallPolicy, ToolHints, ToolMetadata};
use crate::check::ArgumentChecker;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::listing::{ListItem, Listing};
use crate::name::{DirectNames, NameLength};
use crate::offer::HeldTool;
use crate::origin::ConfigOrigin;
use crate::pin::Pinning;
use crate::risk::Risk;
use crate::source::{Source, SourceState};
use crate::switch::DisabledReason;
use crate::tool_selection::{PresetArgument, Selection};

#[derive(Debug)]
pub struct Module {
    pub name: Arc<str>,
    pub description: String,
    pub source: Arc<dyn Source>,
    pub listing: Option<Arc<Listing>>,
    pub registered: bool,
    pub origin: ConfigOrigin,
    pub selection: Arc<Selection>,
    pub tools: Vec<Tool>,
    /// Tools hidden until somebody approves them.
    pub held: Vec<HeldTool>,
    /// Treatment of tools that nobody has approved.
    pub pins: Pinning,
    /// Names in the module's selection that its tool list does not have.
    pub unresolved: Vec<Arc<str>>,
    /// Call policy of the module's tools, unless an override sets one.
    pub policy: CallPolicy,
    /// Call policy for reading the module's resources.
    pub resources: CallPolicy,
    /// `true` if the module lacks an account: it is named, but not listed among the usable modules.
    pub needs_login: bool,
}

#[derive(Clone, Debug)]
pub struct Tool {
    pub key: ToolKey,
    /// Name after the module's override.
    pub name: Arc<str>,
    /// Names on the `direct` surface.
    pub direct: DirectNames,
    /// Definition under `name`.
    pub definition: Raw,
    pub arguments: Arc<[PresetArgument]>,
    pub about: Arc<ToolMetadata>,
    pub hints: ToolHints,
    /// Risk according to the source's own annotations, unaffected by overrides.
    pub risk: Risk,
    pub policy: CallPolicy,
    /// Definition as the source sent it.
    pub original: Raw,
    pub checker: Arc<ArgumentChecker>,
    /// Reason why the tool cannot be called outside a category; `None` if it can.
    pub disabled_reason: Option<DisabledReason>,
}

impl Tool {
    pub fn is_enabled(&self) -> bool {
        self.disabled_reason.is_none()
    }

    pub fn direct_definition(&self, length: NameLength) -> Raw {
        renamed(&self.definition, &self.name, self.direct.of(length))
    }
}

/// A prompt of one module.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub module: usize,
    /// The prompt as its source sent it.
    pub item: ListItem,
    pub direct: DirectNames,
}

impl Prompt {
    pub fn direct_definition(&self, length: NameLength) -> Raw {
        renamed(&self.item.raw, &self.item.name, self.direct.of(length))
    }
}

impl Module {
    /// Returns the version that the source reports.
    pub fn version(&self) -> Option<String> {
        self.listing.as_ref()?.version()
    }

    /// Returns `true` if the login state of the source is unchanged since the catalog was built.
    pub fn is_login_state_unchanged(&self) -> bool {
        self.needs_login == needs_login(&*self.source)
    }

    /// Returns the error for a module whose source has not returned its lists yet.
    pub fn unlisted_error(&self) -> Error {
        let message = match self.source.state() {
            SourceState::Failing { reason, .. } => reason,
            SourceState::NeedsLogin { .. } => {
                let error = Error::new(ErrorKind::AccountRequired, format!("`{}` requires a login.", self.name));
                return match self.source.login_hint() {
                    Some(login_hint) => error.hint(login_hint),
                    None => error,
                };
            }
            _ => format!("Server `{}` has not returned its tool list yet.", self.name),
        };
        Error::new(ErrorKind::UpstreamUnavailable, message)
            .hint("Try again in a moment, or use another module. `hikite doctor` shows the reason.")
    }
}

pub(super) fn needs_login(source: &dyn Source) -> bool {
    matches!(source.state(), SourceState::NeedsLogin { .. })
}

/// Returns the definition with its name replaced; shares the bytes if the name is unchanged.
pub(crate) fn renamed(definition: &Raw, name: &str, shown: &str) -> Raw {
    if name == shown {
        return definition.clone();
    }
    match Object::parse(definition) {
        Ok(object) => object.with("name", shown).raw(),
        Err(_) => definition.clone(),
    }
}

//! Measures what a model reads before its first call: the tool list of each surface, and the result of opening a
//! module.

use std::sync::Arc;

use anyhow::{Result, bail};
use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::catalog::Tool;
use hikite_core::json::Raw;
use hikite_core::name::NameLength;
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use hikite_core::tool_output::ToolOutput;
use hikite_gateway::{Command, Detail, Gateway, ModuleQuery, Surface, Surfaces};
use serde_json::Value;

use super::DEFAULT_SURFACES;
use super::count::{tokens, tokens_of};

/// Member of a module result that was shortened.
const SHORT: &str = "note";

/// Measurements of one module.
#[derive(Clone, Debug)]
pub struct ModuleSize {
    pub name: String,
    pub tools: usize,
    /// Tokens of its tools on the `direct` surface.
    pub flat: usize,
    /// Results of `get_module_schema`, by `detail`.
    pub names: OpenedModuleSize,
    pub signatures: OpenedModuleSize,
    pub schemas: OpenedModuleSize,
}

#[derive(Clone, Copy, Debug)]
pub struct OpenedModuleSize {
    pub tokens: usize,
    /// `false` if the result was too long and a shorter detail was returned.
    pub is_whole: bool,
}

/// Measurements of the `tools/list` of one client.
#[derive(Clone, Debug)]
pub struct MenuSize {
    pub surfaces: Surfaces,
    pub name: String,
    pub tools: usize,
    /// Tokens of the whole list as sent.
    pub tokens: usize,
    /// Tokens of names, descriptions and input schemas, which is all that most clients pass to the model.
    pub passed_on: usize,
    /// Tokens of the server instructions, which most clients pass on too.
    pub instructions: usize,
    /// `true` if the config shows this menu.
    pub is_shown: bool,
}

impl MenuSize {
    /// Returns `true` if this is the default menu.
    pub fn is_default(&self) -> bool {
        self.surfaces == Surfaces::of(DEFAULT_SURFACES)
    }
}

/// Size of one tool definition.
#[derive(Clone, Debug)]
pub struct ToolSize {
    pub key: String,
    pub tokens: usize,
}

/// Measures every module whose list is known.
pub(crate) async fn offers(gateway: &Gateway) -> Result<Vec<ModuleSize>> {
    let view = gateway.catalogs().owner_view();
    let mut offers = Vec::new();
    for module in view.ready_modules().filter(|module| module.listing.is_some()) {
        let tools: Vec<&Tool> = module.tools.iter().filter(|tool| tool.is_enabled()).collect();
        let list: Value = tools.iter().map(|tool| tool.direct_definition(NameLength::Full).value()).collect();
        offers.push(ModuleSize {
            name: module.name.to_string(),
            tools: tools.len(),
            flat: tokens_of(&list),
            names: opened(gateway, &module.name, Detail::Names).await?,
            signatures: opened(gateway, &module.name, Detail::Signatures).await?,
            schemas: opened(gateway, &module.name, Detail::Schemas).await?,
        });
    }
    Ok(offers)
}

/// Returns the modules whose list is unknown.
pub(crate) fn silent(gateway: &Gateway) -> Vec<String> {
    let view = gateway.catalogs().owner_view();
    let silent = view.modules().iter().filter(|module| module.listing.is_none());
    silent.map(|module| module.name.to_string()).collect()
}

/// Measures the flat list, then the other surfaces and the configured one.
pub(crate) fn menus(gateway: &Gateway, shown: Surfaces) -> Vec<MenuSize> {
    let has_categories = !gateway.catalogs().owner_view().categories().is_empty();
    let alone = [Surface::Direct, Surface::Categories, Surface::Modules, Surface::Search];
    let alone = alone.into_iter().filter(|surface| has_categories || *surface != Surface::Categories);
    let mut all: Vec<Surfaces> = alone.map(|surface| Surfaces::of([surface])).collect();
    for more in [Surfaces::of(DEFAULT_SURFACES), shown] {
        if !all.contains(&more) {
            all.push(more);
        }
    }
    all.into_iter().map(|surfaces| menu(gateway, surfaces, surfaces == shown)).collect()
}

/// Returns the tools with the largest definitions.
pub(crate) fn largest(gateway: &Gateway, top: usize) -> Vec<ToolSize> {
    let view = gateway.catalogs().owner_view();
    let weight = |tool: &Tool| ToolSize {
        key: tool.key.to_string(),
        tokens: tokens_of(&tool.direct_definition(NameLength::Full).value()),
    };
    let tools = view.ready_modules().flat_map(|module| &module.tools).filter(|tool| tool.is_enabled());
    let mut weights: Vec<ToolSize> = tools.map(weight).collect();
    weights.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.key.cmp(&b.key)));
    weights.truncate(top);
    weights
}

fn menu(gateway: &Gateway, surfaces: Surfaces, is_shown: bool) -> MenuSize {
    let owner = Caller::owner();
    let list: Vec<Value> = gateway.discovery().menu(&owner, surfaces).iter().map(Raw::value).collect();
    let names = Surface::ALL.into_iter().filter(|surface| surfaces.contains(*surface)).map(Surface::name);
    MenuSize {
        surfaces,
        name: names.collect::<Vec<_>>().join(" + "),
        tools: list.len(),
        tokens: tokens_of(&list.iter().cloned().collect()),
        passed_on: tokens_of(&list.iter().map(passed_on).collect()),
        instructions: gateway.discovery().instructions(&owner, surfaces).map_or(0, |text| tokens(&text)),
        is_shown,
    }
}

fn passed_on(definition: &Value) -> Value {
    let members = ["name", "description", "inputSchema"];
    let selected = members.iter().filter_map(|name| Some(((*name).to_owned(), definition.get(*name)?.clone())));
    Value::Object(selected.collect())
}

/// Measures the result of opening a module.
async fn opened(gateway: &Gateway, module: &str, detail: Detail) -> Result<OpenedModuleSize> {
    let opening = ModuleQuery { modules: vec![module.to_owned()], detail, refresh: true, ..ModuleQuery::default() };
    let result = gateway.dispatch(Command::Open(opening), context()).await?;
    let answer = ToolOutput::read(&result);
    if answer.failed {
        bail!("`{module}` cannot be opened: {}", answer.text);
    }
    let sheets = answer.value.items().unwrap_or_default();
    let is_short = |sheet: &Raw| sheet.object().is_some_and(|sheet| sheet.get(SHORT).is_some());
    Ok(OpenedModuleSize { tokens: tokens(&answer.text), is_whole: !sheets.iter().any(is_short) })
}

/// Returns a call context of the owner, without a session and without elicitation.
fn context() -> CallContext {
    let session =
        Session { id: SessionId(0), caller: Caller::owner(), client_capabilities: ClientCapabilities::default() };
    CallContext {
        session: Arc::new(session),
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: true,
        account: None,
    }
}

//! Measures what a model reads before its first call: the tool list of each surface, and the result of opening a
//! module.

use std::sync::Arc;

use anyhow::{Result, bail};
use hikite_core::answer::Answer;
use hikite_core::caller::{Abilities, Caller, Session, SessionId};
use hikite_core::catalog::Tool;
use hikite_core::json::Raw;
use hikite_core::name::NameLength;
use hikite_core::source::{CallContext, Nobody, Origin};
use hikite_gateway::{Command, Detail, Gateway, Opening, Surface, Surfaces};
use serde_json::Value;

use super::DEFAULT;
use super::count::{tokens, tokens_of};

/// Member of a module result that was shortened.
const SHORT: &str = "note";

/// Measurements of one module.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) name: String,
    pub(crate) tools: usize,
    /// Tokens of its tools on the `direct` surface.
    pub(crate) flat: usize,
    /// Results of `get_module_schema`, by `detail`.
    pub(crate) names: Opened,
    pub(crate) signatures: Opened,
    pub(crate) schemas: Opened,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) tokens: usize,
    /// `false` if the result was too long and a shorter detail was returned.
    pub(crate) is_whole: bool,
}

/// Measurements of the `tools/list` of one client.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    pub(crate) surfaces: Surfaces,
    pub(crate) name: String,
    pub(crate) tools: usize,
    /// Tokens of the whole list as sent.
    pub(crate) tokens: usize,
    /// Tokens of names, descriptions and input schemas, which is all that most clients pass to the model.
    pub(crate) passed_on: usize,
    /// Tokens of the server instructions, which most clients pass on too.
    pub(crate) instructions: usize,
    /// `true` if the config shows this menu.
    pub(crate) is_shown: bool,
}

impl Menu {
    /// Returns `true` if this is the default menu.
    pub(crate) fn is_default(&self) -> bool {
        self.surfaces == Surfaces::of(DEFAULT)
    }
}

/// Size of one tool definition.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    pub(crate) key: String,
    pub(crate) tokens: usize,
}

/// Measures every module whose list is known.
pub(crate) async fn offers(gateway: &Gateway) -> Result<Vec<Offer>> {
    let view = gateway.owner_view();
    let mut offers = Vec::new();
    for module in view.ready_modules().filter(|module| module.listing.is_some()) {
        let tools: Vec<&Tool> = module.tools.iter().filter(|tool| tool.is_enabled()).collect();
        let list: Value =
            tools.iter().map(|tool| tool.direct_definition(NameLength::Whole).value()).collect();
        offers.push(Offer {
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
    let view = gateway.owner_view();
    let silent = view.modules().iter().filter(|module| module.listing.is_none());
    silent.map(|module| module.name.to_string()).collect()
}

/// Measures the flat list, then the other surfaces and the configured one.
pub(crate) fn menus(gateway: &Gateway, shown: Surfaces) -> Vec<Menu> {
    let has_categories = !gateway.owner_view().categories().is_empty();
    let alone = [Surface::Direct, Surface::Categories, Surface::Modules, Surface::Search];
    let alone = alone.into_iter().filter(|surface| has_categories || *surface != Surface::Categories);
    let mut all: Vec<Surfaces> = alone.map(|surface| Surfaces::of([surface])).collect();
    for more in [Surfaces::of(DEFAULT), shown] {
        if !all.contains(&more) {
            all.push(more);
        }
    }
    all.into_iter().map(|surfaces| menu(gateway, surfaces, surfaces == shown)).collect()
}

/// Returns the tools with the largest definitions.
pub(crate) fn largest(gateway: &Gateway, top: usize) -> Vec<Weight> {
    let view = gateway.owner_view();
    let weight = |tool: &Tool| Weight {
        key: tool.key.to_string(),
        tokens: tokens_of(&tool.direct_definition(NameLength::Whole).value()),
    };
    let tools = view.ready_modules().flat_map(|module| &module.tools).filter(|tool| tool.is_enabled());
    let mut weights: Vec<Weight> = tools.map(weight).collect();
    weights.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.key.cmp(&b.key)));
    weights.truncate(top);
    weights
}

fn menu(gateway: &Gateway, surfaces: Surfaces, is_shown: bool) -> Menu {
    let owner = Caller::owner();
    let list: Vec<Value> = gateway.menu(&owner, surfaces).iter().map(Raw::value).collect();
    let names = Surface::ALL.into_iter().filter(|surface| surfaces.contains(*surface)).map(Surface::name);
    Menu {
        surfaces,
        name: names.collect::<Vec<_>>().join(" + "),
        tools: list.len(),
        tokens: tokens_of(&list.iter().cloned().collect()),
        passed_on: tokens_of(&list.iter().map(passed_on).collect()),
        instructions: gateway.instructions(&owner, surfaces).map_or(0, |text| tokens(&text)),
        is_shown,
    }
}

fn passed_on(definition: &Value) -> Value {
    let members = ["name", "description", "inputSchema"];
    let kept = members.iter().filter_map(|name| Some(((*name).to_owned(), definition.get(*name)?.clone())));
    Value::Object(kept.collect())
}

/// Measures the result of opening a module.
async fn opened(gateway: &Gateway, module: &str, detail: Detail) -> Result<Opened> {
    let opening = Opening { modules: vec![module.to_owned()], detail, refresh: true, ..Opening::default() };
    let result = gateway.dispatch(Command::Open(opening), context()).await?;
    let answer = Answer::read(&result);
    if answer.failed {
        bail!("`{module}` cannot be opened: {}", answer.text);
    }
    let sheets = answer.value.items().unwrap_or_default();
    let is_short = |sheet: &Raw| sheet.object().is_some_and(|sheet| sheet.get(SHORT).is_some());
    Ok(Opened { tokens: tokens(&answer.text), is_whole: !sheets.iter().any(is_short) })
}

/// Returns a call context of the owner, without a session and without elicitation.
fn context() -> CallContext {
    let session = Session { id: SessionId(0), caller: Caller::owner(), abilities: Abilities::default() };
    CallContext {
        session: Arc::new(session),
        back: Arc::new(Nobody),
        origin: Origin::default(),
        takes_rounds: true,
        account: None,
    }
}

//! What a model reads before it calls anything: the list of tools of each surface, and what it gets when it opens a
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

/// What a module that is told in fewer words than were asked for has beside them.
const SHORT: &str = "note";

/// One module.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) name: String,
    pub(crate) tools: usize,
    /// Its tools as the `direct` surface shows them.
    pub(crate) flat: usize,
    /// What `get_module_schema` answers, by its `detail`.
    pub(crate) names: Opened,
    pub(crate) signatures: Opened,
    pub(crate) schemas: Opened,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) tokens: usize,
    /// Whether it is what was asked for. What would be too long is told in fewer words.
    pub(crate) is_whole: bool,
}

/// The `tools/list` of one client.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    pub(crate) surfaces: Surfaces,
    pub(crate) name: String,
    pub(crate) tools: usize,
    /// All of it, as it is sent.
    pub(crate) tokens: usize,
    /// Names, descriptions and input schemas alone: most clients pass no more than that on to the model.
    pub(crate) passed_on: usize,
    /// How to use the tools, which most clients pass on, too.
    pub(crate) instructions: usize,
    /// What the config shows.
    pub(crate) is_shown: bool,
}

impl Menu {
    /// What a client is shown where nobody decided otherwise.
    pub(crate) fn is_default(&self) -> bool {
        self.surfaces == Surfaces::of(DEFAULT)
    }
}

/// One tool's definition.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    pub(crate) key: String,
    pub(crate) tokens: usize,
}

/// Every module whose list is known.
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

/// Modules that told no list.
pub(crate) fn silent(gateway: &Gateway) -> Vec<String> {
    let view = gateway.owner_view();
    let silent = view.modules().iter().filter(|module| module.listing.is_none());
    silent.map(|module| module.name.to_string()).collect()
}

/// The flat list first, then every other surface, and what is shown by default.
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

/// The tools whose definitions cost most.
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

/// What the model reads once it has opened the module.
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

/// The owner, in no conversation, and without anybody to answer questions.
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

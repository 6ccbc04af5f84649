//! Measures what tools and their results cost a model in tokens, directly and through hikite. Everything is counted
//! on this machine. The report states numbers and does not judge them.

mod answer;
mod attempt;
mod break_even;
mod chart;
mod count;
#[cfg(test)]
mod document;
mod menu;
mod number;
mod object;
mod page;
mod recorded;
mod recorded_runtime;
mod section;
mod shape;
mod table;

use anyhow::Result;
use hikite_gateway::{Gateway, Surface, Surfaces};

pub(crate) use answer::{RecordedResult, ResultSize, read as read_answers};
pub(crate) use attempt::attempt;
pub(crate) use chart::chart;
pub(crate) use count::{VOCABULARY, tokens};
pub(crate) use object::object;
pub(crate) use page::write as write_page;
pub(crate) use recorded_runtime::start_recorded;
pub(crate) use section::text;

use break_even::BreakEven;
use menu::{MenuSize, ModuleSize, ToolSize};

/// Default surfaces of a config without categories.
pub(crate) const DEFAULT_SURFACES: [Surface; 2] = [Surface::Modules, Surface::Search];

/// All measurements.
#[derive(Clone, Debug)]
pub(crate) struct MeasureReport {
    /// Modules in config order.
    pub(crate) modules: Vec<ModuleSize>,
    /// Names of modules whose list is unknown.
    pub(crate) silent: Vec<String>,
    /// Menus by surface; the first is the flat list.
    pub(crate) menus: Vec<MenuSize>,
    pub(crate) even: BreakEven,
    pub(crate) answers: Vec<ResultSize>,
    /// Tools with the largest definitions.
    pub(crate) largest: Vec<ToolSize>,
}

impl MeasureReport {
    /// Measures the current catalog. `shown` are the configured surfaces, `top` the number of tools to list.
    pub(crate) async fn new(
        gateway: &Gateway,
        shown: Surfaces,
        samples: &[RecordedResult],
        top: usize,
    ) -> Result<Self> {
        let modules = menu::offers(gateway).await?;
        let menus = menu::menus(gateway, shown);
        let weight = |surfaces| menus.iter().find(|menu| menu.surfaces == surfaces).map_or(0, |menu| menu.tokens);
        let flat = weight(Surfaces::of([Surface::Direct]));
        let opened: Vec<usize> = modules.iter().map(|module| module.signatures.tokens).collect();
        Ok(Self {
            even: BreakEven::new(flat, weight(Surfaces::of(DEFAULT_SURFACES)), &opened),
            silent: menu::silent(gateway),
            largest: menu::largest(gateway, top),
            answers: samples.iter().map(RecordedResult::measure_tokens).collect(),
            modules,
            menus,
        })
    }

    pub(crate) fn tools(&self) -> usize {
        self.modules.iter().map(|module| module.tools).sum()
    }

    /// Returns the tokens of all tools in one flat list.
    pub(crate) fn flat(&self) -> usize {
        self.even.flat
    }
}

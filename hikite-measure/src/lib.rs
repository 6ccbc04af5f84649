//! Measurements for `hikite measure` and `hikite eval`: what tools and their results cost a model in tokens, directly
//! and through hikite, and how well search finds tools ([`evaluation`]). Everything is counted on this machine. The
//! reports state numbers and do not judge them. Starting the gateway to measure is left to the program.

mod answer;
mod attempt;
mod break_even;
mod chart;
mod count;
pub mod evaluation;
mod menu;
mod number;
mod object;
mod page;
mod progress;
mod recorded;
mod section;
mod shape;
mod table;

use anyhow::Result;
use hikite_gateway::{Gateway, Surface, Surfaces};

pub use answer::{RecordedResult, ResultSize, read as read_answers};
pub use attempt::attempt;
pub use break_even::BreakEven;
pub use chart::chart;
pub use count::{VOCABULARY, tokens};
pub use menu::{MenuSize, ModuleSize, OpenedModuleSize, ToolSize};
pub use number::thousands;
pub use object::object;
pub use page::write as write_page;
pub use recorded::modules as recorded_modules;
pub use section::text;

/// Default surfaces of a config without categories.
pub const DEFAULT_SURFACES: [Surface; 2] = [Surface::Modules, Surface::Search];

/// All measurements.
#[derive(Clone, Debug)]
pub struct MeasureReport {
    /// Modules in config order.
    pub modules: Vec<ModuleSize>,
    /// Names of modules whose list is unknown.
    pub silent: Vec<String>,
    /// Menus by surface; the first is the flat list.
    pub menus: Vec<MenuSize>,
    pub even: BreakEven,
    pub answers: Vec<ResultSize>,
    /// Tools with the largest definitions.
    pub largest: Vec<ToolSize>,
}

impl MeasureReport {
    /// Measures the current catalog. `shown` are the configured surfaces, `top` the number of tools to list.
    pub async fn new(gateway: &Gateway, shown: Surfaces, samples: &[RecordedResult], top: usize) -> Result<Self> {
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

    pub fn tools(&self) -> usize {
        self.modules.iter().map(|module| module.tools).sum()
    }

    /// Returns the tokens of all tools in one flat list.
    pub fn flat(&self) -> usize {
        self.even.flat
    }
}

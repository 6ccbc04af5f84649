//! Measures what tools and their results cost a model in tokens, directly and through hikite. Everything is counted
//! on this machine. The report states numbers and does not judge them.

mod answer;
mod attempt;
mod chart;
mod count;
#[cfg(test)]
mod document;
mod even;
mod menu;
mod number;
mod object;
mod page;
mod recorded;
mod section;
mod shape;
mod subject;
mod table;

use anyhow::Result;
use hikite_gateway::{Gateway, Surface, Surfaces};

pub(crate) use answer::{Sample, Weighed, read as read_answers};
pub(crate) use attempt::attempt;
pub(crate) use chart::chart;
pub(crate) use count::{VOCABULARY, tokens};
pub(crate) use object::object;
pub(crate) use page::write as write_page;
pub(crate) use section::text;
pub(crate) use subject::of_lists;

use even::Even;
use menu::{Menu, Offer, Weight};

/// Default surfaces of a config without categories.
pub(crate) const DEFAULT: [Surface; 2] = [Surface::Modules, Surface::Search];

/// All measurements.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Modules in config order.
    pub(crate) modules: Vec<Offer>,
    /// Names of modules whose list is unknown.
    pub(crate) silent: Vec<String>,
    /// Menus by surface; the first is the flat list.
    pub(crate) menus: Vec<Menu>,
    pub(crate) even: Even,
    pub(crate) answers: Vec<Weighed>,
    /// Tools with the largest definitions.
    pub(crate) largest: Vec<Weight>,
}

impl Report {
    /// Measures the current catalog. `shown` are the configured surfaces, `top` the number of tools to list.
    pub(crate) async fn new(
        gateway: &Gateway,
        shown: Surfaces,
        samples: &[Sample],
        top: usize,
    ) -> Result<Self> {
        let modules = menu::offers(gateway).await?;
        let menus = menu::menus(gateway, shown);
        let weight =
            |surfaces| menus.iter().find(|menu| menu.surfaces == surfaces).map_or(0, |menu| menu.tokens);
        let flat = weight(Surfaces::of([Surface::Direct]));
        let opened: Vec<usize> = modules.iter().map(|module| module.signatures.tokens).collect();
        Ok(Self {
            even: Even::new(flat, weight(Surfaces::of(DEFAULT)), &opened),
            silent: menu::silent(gateway),
            largest: menu::largest(gateway, top),
            answers: samples.iter().map(Sample::weigh).collect(),
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

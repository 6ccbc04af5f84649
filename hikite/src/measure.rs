//! What the tools and their answers cost a model, in tokens: as they are, and through hikite. Everything is counted on
//! this machine. It tells figures and judges nothing.

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

/// What a client is shown where nobody decided otherwise and there are no categories.
pub(crate) const DEFAULT: [Surface; 2] = [Surface::Modules, Surface::Search];

/// All figures.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// In the order of the config.
    pub(crate) modules: Vec<Offer>,
    /// Modules whose list is not known.
    pub(crate) silent: Vec<String>,
    /// The flat list is the first.
    pub(crate) menus: Vec<Menu>,
    pub(crate) even: Even,
    pub(crate) answers: Vec<Weighed>,
    /// The tools whose definitions cost most.
    pub(crate) largest: Vec<Weight>,
}

impl Report {
    /// Weighs what is known now. `shown` is what the config shows its clients, `top` how many tools are named.
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

    /// What all tools cost in one list.
    pub(crate) fn flat(&self) -> usize {
        self.even.flat
    }
}

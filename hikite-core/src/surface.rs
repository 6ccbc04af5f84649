//! Names of the surfaces: the fixed sets of tools that clients are shown.

use crate::name::NameLength;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    Categories,
    Direct,
    Modules,
    Search,
}

impl Surface {
    pub const ALL: [Self; 4] = [Self::Categories, Self::Direct, Self::Modules, Self::Search];

    pub fn name(self) -> &'static str {
        match self {
            Self::Categories => "categories",
            Self::Direct => "direct",
            Self::Modules => "modules",
            Self::Search => "search",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.name() == name)
    }
}

/// The surfaces of one client, at least one, and the maximum length of names on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Surfaces {
    bits: u8,
    short_names: bool,
}

impl Surfaces {
    pub fn of(surfaces: impl IntoIterator<Item = Surface>) -> Self {
        let bits = surfaces.into_iter().fold(0, |bits, surface| bits | 1 << surface as u8);
        Self { bits, short_names: false }
    }

    /// Sets whether the client accepts only names of up to 64 characters.
    #[must_use]
    pub fn with_short_names(self, short_names: bool) -> Self {
        Self { short_names, ..self }
    }

    pub fn contains(self, surface: Surface) -> bool {
        self.bits & 1 << surface as u8 != 0
    }

    /// Returns `true` if `other` contains all of these surfaces.
    pub fn is_within(self, other: Self) -> bool {
        self.bits & !other.bits == 0
    }

    pub fn name_length(self) -> NameLength {
        if self.short_names { NameLength::Short } else { NameLength::Full }
    }

    pub fn names(self) -> Vec<&'static str> {
        Surface::ALL.into_iter().filter(|surface| self.contains(*surface)).map(Surface::name).collect()
    }

    pub fn shows_direct_tools(self) -> bool {
        self.contains(Surface::Direct)
    }

    /// Returns `true` if the tools shown depend on the servers' listings.
    pub fn needs_lists(self) -> bool {
        self.shows_direct_tools() || self.contains(Surface::Modules) || self.contains(Surface::Search)
    }
}

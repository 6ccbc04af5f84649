//! Who keeps something that the gateway has, and so may change it.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeper {
    /// The config file.
    #[default]
    File,
    /// The store: it was made while we ran.
    Store,
    /// The program that hikite is part of.
    Program,
}

impl Keeper {
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Store => "store",
            Self::Program => "program",
        }
    }
}

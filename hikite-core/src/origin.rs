//! The origin of a configured item, which decides who may change it.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigOrigin {
    /// The config file.
    #[default]
    File,
    /// The store: the item was created at run time.
    Store,
    /// The program that embeds hikite.
    Program,
}

impl ConfigOrigin {
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Store => "store",
            Self::Program => "program",
        }
    }
}

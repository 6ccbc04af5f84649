//! Administration of upstream servers and categories at run time, which otherwise come from the config. Implemented
//! where the config is read; the gateway only knows this trait.

use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::login::ModuleLogins;
use hikite_core::source::BoxFuture;

/// The stored object, and `true` if it is new.
pub type PutResult = (Raw, bool);

pub trait ConfigAdmin: Send + Sync + std::fmt::Debug {
    /// Returns all upstream servers, with secrets masked.
    fn upstreams(&self) -> Vec<Raw>;

    fn put_upstream<'a>(&'a self, name: &'a str, form: &'a Object) -> BoxFuture<'a, Result<PutResult, Error>>;

    fn remove_upstream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns the changes that another client's config would make, and applies them if `apply` is set.
    fn import<'a>(&'a self, config: &'a Raw, apply: bool) -> BoxFuture<'a, Result<Raw, Error>>;

    /// Returns the stored document of a category.
    fn category_document(&self, name: &str) -> Option<Raw>;

    /// Stores a category. Returns `true` if it is new.
    fn put_category<'a>(&'a self, name: &'a str, form: &'a Object) -> BoxFuture<'a, Result<bool, Error>>;

    fn remove_category<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns the logins of the upstream servers; `None` while hikite stops.
    fn logins(&self) -> Option<Arc<dyn ModuleLogins>>;

    /// Counts the tokens of a text, and returns the name of the vocabulary.
    fn count(&self, text: &str) -> (usize, &'static str);
}

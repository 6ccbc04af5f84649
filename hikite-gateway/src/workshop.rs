//! What people change that else the config alone decides: remote servers and categories. Who reads configs does the work;
//! the gateway knows no more of it than this.

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::BoxFuture;

use crate::gateway::Gateway;

/// What was put in, and whether it is new.
pub type Put = (Raw, bool);

pub trait Workshop: Send + Sync + std::fmt::Debug {
    /// Every upstream server, secrets masked.
    fn upstreams(&self) -> Vec<Raw>;

    fn put_upstream<'a>(&'a self, name: &'a str, form: &'a Object) -> BoxFuture<'a, Result<Put, Error>>;

    fn remove_upstream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// What the config of another client would change, and with `apply` the change itself.
    fn import<'a>(&'a self, config: &'a Raw, apply: bool) -> BoxFuture<'a, Result<Raw, Error>>;

    /// The form of a category that is kept in the store.
    fn category_form(&self, name: &str) -> Option<Raw>;

    /// Whether it is new.
    fn put_category<'a>(&'a self, name: &'a str, form: &'a Object) -> BoxFuture<'a, Result<bool, Error>>;

    fn remove_category<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Counts the tokens of a text, and says by which vocabulary.
    fn count(&self, text: &str) -> (usize, &'static str);
}

impl Gateway {
    /// Once, by who reads the config.
    pub fn work_with(&self, workshop: Arc<dyn Workshop>) {
        let _ = self.workshop.set(workshop);
    }

    pub fn workshop(&self) -> Result<&Arc<dyn Workshop>, Error> {
        self.workshop.get().ok_or_else(|| Error::new(Kind::NotFound, "nothing of the kind is kept here"))
    }
}

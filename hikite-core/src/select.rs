//! Taking a part of an answer: a plain list of fields, a plain path, or a jq program. Fields and paths are done here, at
//! once; jq is run elsewhere, where it can be stopped.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Error;
use crate::json::Raw;
use crate::source::BoxFuture;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `number,title,user.login,labels[].name`
    Fields(Fields),
    Jq(Arc<str>),
}

impl Selector {
    /// Fails with what is wrong, in words that follow the name of what was read.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("must name fields or be a jq program".into());
        }
        Ok(Self::Jq(text.into()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(Vec<String>);

impl Fields {
    /// The same with only these fields, of each element where it is a list.
    pub fn pick(&self, value: &Value) -> Value {
        value.clone()
    }
}

/// Runs jq programs that nobody has read, within bounds of time, memory and output.
pub trait Sieve: Send + Sync + fmt::Debug {
    /// One output as it is, several as an array, none as null.
    fn run(&self, program: Arc<str>, input: Raw) -> BoxFuture<'_, Result<Raw, Error>>;
}

//! One request of a tool with its pagination, nested lists and chunked list.

use std::sync::Arc;

use super::page::Pager;
use super::request::Request;
use crate::expression::{Expression, Names};
use crate::file::{Chunk, Recursion, RequestFile, Usage};

/// Source form of a leg in the module file.
pub(crate) struct Parts<'a> {
    pub(crate) request: &'a RequestFile,
    pub(crate) pages: Option<&'a Usage>,
    pub(crate) recurse: Option<&'a Recursion>,
    pub(crate) chunk: Option<&'a Chunk>,
    pub(crate) result: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) request: Request,
    /// Pagination and default page size.
    pub(crate) pager: Option<(Arc<Pager>, u64)>,
    pub(crate) below: Option<Below>,
    pub(crate) chunk: Option<Chunk>,
    pub(crate) result: Option<Expression>,
}

/// Rule for nested lists of items.
#[derive(Debug)]
pub(crate) struct Below {
    pub(crate) holds: Expression,
    pub(crate) request: Request,
    pub(crate) pager: Option<Arc<Pager>>,
    pub(crate) into: String,
    pub(crate) depth: usize,
}

impl Leg {
    pub(crate) fn new(
        parts: &Parts<'_>,
        pager: Option<(Arc<Pager>, u64)>,
        below: Option<Arc<Pager>>,
        names: &Names,
    ) -> Result<Self, String> {
        let below = match parts.recurse {
            None => None,
            Some(_) if pager.is_none() => {
                return Err("`recurse` needs `pages`, which says where the list is".into());
            }
            Some(rule) => Some(Below {
                holds: Expression::new(&rule.holds, names),
                request: Request::new(&rule.request, names)?,
                pager: below,
                into: rule.into.clone(),
                depth: rule.depth,
            }),
        };
        if parts.chunk.is_some_and(|chunk| chunk.size == 0 || !chunk.join.starts_with('.')) {
            return Err("`chunk` has a size of at least 1, and `join` is a plain path".into());
        }
        Ok(Self {
            request: Request::new(parts.request, names)?,
            pager,
            below,
            chunk: parts.chunk.cloned(),
            result: parts.result.map(|text| Expression::new(text, names)),
        })
    }

    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        self.request.expressions(found);
        found.extend(&self.result);
        found.extend(self.pager.iter().flat_map(|(pager, _)| pager.expressions()));
        if let Some(below) = &self.below {
            found.push(&below.holds);
            found.extend(below.pager.iter().flat_map(|pager| pager.expressions()));
            below.request.expressions(found);
        }
    }

    pub(crate) fn variables<'a>(&'a self, found: &mut Vec<&'a str>) {
        self.request.variables(found);
        if let Some(below) = &self.below {
            below.request.variables(found);
        }
    }
}

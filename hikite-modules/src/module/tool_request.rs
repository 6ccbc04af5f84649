//! One request of a tool with its pagination, nested lists and chunked list.

use std::sync::Arc;

use super::page::Paginator;
use super::request::RequestTemplate;
use crate::expression::{Expression, ExpressionNames};
use crate::file::{ChunkFile, PaginationUsage, RecursionFile, ServiceRequestFile};

/// Source form of a leg in the module file.
pub(crate) struct ToolRequestParts<'a> {
    pub(crate) request: &'a ServiceRequestFile,
    pub(crate) pages: Option<&'a PaginationUsage>,
    pub(crate) recurse: Option<&'a RecursionFile>,
    pub(crate) chunk: Option<&'a ChunkFile>,
    pub(crate) result: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct ToolRequest {
    pub(crate) request: RequestTemplate,
    /// Pagination and default page size.
    pub(crate) pager: Option<(Arc<Paginator>, u64)>,
    pub(crate) nested_list: Option<NestedList>,
    pub(crate) chunk: Option<ChunkFile>,
    pub(crate) result: Option<Expression>,
}

/// Rule for nested lists of items.
#[derive(Debug)]
pub(crate) struct NestedList {
    pub(crate) holds: Expression,
    pub(crate) request: RequestTemplate,
    pub(crate) pager: Option<Arc<Paginator>>,
    pub(crate) into: String,
    pub(crate) depth: usize,
}

impl ToolRequest {
    pub(crate) fn new(
        parts: &ToolRequestParts<'_>,
        pager: Option<(Arc<Paginator>, u64)>,
        nested_list: Option<Arc<Paginator>>,
        names: &ExpressionNames,
    ) -> Result<Self, String> {
        let nested_list = match parts.recurse {
            None => None,
            Some(_) if pager.is_none() => {
                return Err("`recurse` needs `pages`, which gives the location of the list".into());
            }
            Some(rule) => Some(NestedList {
                holds: Expression::new(&rule.holds, names),
                request: RequestTemplate::new(&rule.request, names)?,
                pager: nested_list,
                into: rule.into.clone(),
                depth: rule.depth,
            }),
        };
        if parts.chunk.is_some_and(|chunk| chunk.size == 0 || !chunk.join.starts_with('.')) {
            return Err("`chunk` needs a size of at least 1, and `join` must be a plain path".into());
        }
        Ok(Self {
            request: RequestTemplate::new(parts.request, names)?,
            pager,
            nested_list,
            chunk: parts.chunk.cloned(),
            result: parts.result.map(|text| Expression::new(text, names)),
        })
    }

    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        self.request.expressions(found);
        found.extend(&self.result);
        found.extend(self.pager.iter().flat_map(|(pager, _)| pager.expressions()));
        if let Some(nested_list) = &self.nested_list {
            found.push(&nested_list.holds);
            found.extend(nested_list.pager.iter().flat_map(|pager| pager.expressions()));
            nested_list.request.expressions(found);
        }
    }

    pub(crate) fn variables<'a>(&'a self, found: &mut Vec<&'a str>) {
        self.request.variables(found);
        if let Some(nested_list) = &self.nested_list {
            nested_list.request.variables(found);
        }
    }
}

//! Discovery: how clients and programs find out which tools there are. Lists, instructions, descriptions of modules and
//! categories, search, and tools as REST objects. Runs nothing.

mod category;
mod list;
mod module_schema;
mod search_tool;
mod tool_object;

use std::sync::Arc;

use hikite_core::limits::Limits;

use crate::audit::Auditor;
use crate::catalogs::Catalogs;
use crate::describe::SentDescriptions;
use crate::lookup::Lookup;
use crate::search::Search;
use crate::token_savings::TokenSavings;

pub use list::ListPage;
pub use tool_object::{FoundTools, ToolFilter, ToolListPage};

pub struct Discovery {
    pub(crate) limits: Arc<Limits>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) lookup: Lookup,
    pub(crate) search: Arc<Search>,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) token_savings: Arc<TokenSavings>,
    /// Descriptions that each conversation has received.
    pub(crate) sent: SentDescriptions,
}

impl std::fmt::Debug for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discovery").finish_non_exhaustive()
    }
}

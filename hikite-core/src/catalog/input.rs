//! Input from which a catalog is built.

use std::sync::Arc;

use crate::category::rule::CategoryRule;
use crate::key::ToolKey;
use crate::offer::ModuleOffer;
use crate::permission::Permissions;
use crate::switch::Switches;

#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogInput {
    pub(crate) modules: Vec<ModuleOffer>,
    pub(crate) categories: Vec<Arc<CategoryRule>>,
    pub(crate) switches: Switches,
    /// Permissions of the caller; `None` allows everything.
    pub(crate) permissions: Option<Arc<Permissions>>,
}

impl CatalogInput {
    /// Returns `true` if messages may mention a tool that is in no list.
    pub(crate) fn may_mention(&self, module: &Arc<str>, tool: &Arc<str>) -> bool {
        let key = || ToolKey::new(Arc::clone(module), Arc::clone(tool));
        self.permissions.as_ref().is_none_or(|permissions| permissions.allows_unlisted(&key()))
    }
}

//! The frame of every page: navigation, messages, and display settings.

use super::PageContext;

/// A navigation link with its keyboard shortcut after `g`.
pub(crate) struct NavigationLink {
    pub(crate) place: &'static str,
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
}

impl PageContext {
    /// Returns the links that this user can follow.
    pub(crate) fn links(&self) -> Vec<NavigationLink> {
        let everybody = [
            ("/ui", "h", self.t("Home")),
            ("/ui/modules", "m", self.t("Modules")),
            ("/ui/playground", "p", self.t("Playground")),
            ("/ui/batch", "b", self.t("Batch")),
            ("/ui/accounts", "a", self.t("Accounts")),
            ("/ui/start", "s", self.t("Connect a client")),
        ];
        let admins = [
            ("/ui/categories", "c", self.t("Categories")),
            ("/ui/projects", "j", self.t("Projects")),
            ("/ui/pins", "i", self.t("Pins")),
            ("/ui/audit", "u", self.t("Audit log")),
            ("/ui/access", "e", self.t("Users and clients")),
        ];
        let admins = admins.into_iter().filter(|_| self.visitor.is_admin);
        everybody.into_iter().chain(admins).map(|(place, key, name)| NavigationLink { place, key, name }).collect()
    }

    pub(crate) fn themes(&self) -> [(&'static str, &'static str); 3] {
        [("auto", self.t("System")), ("light", self.t("Light")), ("dark", self.t("Dark"))]
    }

    /// Returns the message for a finished action. Limited to known ones, because anybody can craft a URL.
    pub(crate) fn flash(&self) -> Option<&'static str> {
        Some(match self.parameter("done")? {
            "saved" => self.t("Saved."),
            "removed" => self.t("Removed."),
            "restarted" => self.t("Restarted."),
            "enabled" => self.t("Enabled."),
            "disabled" => self.t("Disabled."),
            "approved" => self.t("Approved."),
            "blocked" => self.t("Blocked."),
            "restored" => self.t("Access restored."),
            "revoked" => self.t("Revoked."),
            "imported" => self.t("Imported."),
            "connected" => self.t("Connected."),
            "verified" => self.t("Verified. The service accepts the key."),
            "unverified" => self.t("Saved, but not verified yet. Check the account again later."),
            _ => return None,
        })
    }
}

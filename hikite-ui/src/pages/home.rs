//! The home page: status, savings, and items that need attention.

use askama::Template;
use hikite_api::{Calls, Concern, Module, Modules, Status};
use hikite_core::language::Language;

use crate::chart::{self, Bar};
use crate::context::PageContext;
use crate::error_text::sentence;
use crate::number;
use crate::page::{OrErrorPage, PageResult, show as page};

/// Call statistics as text, of one module or of all.
pub(crate) trait CallText {
    fn rate(&self) -> String;
    fn errors(&self) -> String;
    fn spans(&self) -> String;
}

impl CallText for Calls {
    fn rate(&self) -> String {
        format!("{}.0", self.per_minute)
    }

    fn errors(&self) -> String {
        format!("{:.1} %", self.error_rate * 100.0)
    }

    fn spans(&self) -> String {
        let span = |ms: Option<f64>| {
            ms.map_or_else(|| "–".to_owned(), |ms| if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") })
        };
        format!("{} / {} ms", span(self.p50_ms), span(self.p99_ms))
    }
}

/// A concern as text.
trait ConcernText {
    fn headline(&self, context: &PageContext) -> String;
    fn english(&self, context: &PageContext) -> Option<String>;
    fn next_step(&self, context: &PageContext) -> String;
    fn place(&self) -> Option<String>;
}

impl ConcernText for Concern {
    /// Returns what is wrong, in the language of the page.
    fn headline(&self, context: &PageContext) -> String {
        if context.language == Language::English {
            return sentence(&self.message);
        }
        let text = match &*self.kind {
            "config" => context.t("The config file has an error."),
            "audit" => context.t("The audit log needs attention."),
            "module" => context.t("Calls to this module fail."),
            "login" => context.t("This module needs a login."),
            "account" => context.t("This account needs attention."),
            "client" => context.t("This client is waiting for approval."),
            "pin" => context.t("This tool is blocked because its definition is not approved."),
            _ => context.t("This needs attention."),
        };
        text.to_owned()
    }

    /// Returns the English message, if the headline is not English.
    fn english(&self, context: &PageContext) -> Option<String> {
        (context.language != Language::English).then(|| sentence(&self.message))
    }

    fn next_step(&self, context: &PageContext) -> String {
        if context.language == Language::English {
            return sentence(&self.hint);
        }
        let text = match &*self.kind {
            "config" => context.t("Correct the file. Until then, the previous config stays active."),
            "audit" => context.t("Open the audit log, and check the server log."),
            "module" => context.t("Check the settings and the error output, then restart the module."),
            "login" => context.t("Open the module and follow its instructions."),
            "account" => context.t("Reconnect the account, or check it again, on the Accounts page."),
            "client" => context.t("Check its redirect URIs, then approve or revoke it."),
            "pin" => context.t("Review the changes, then approve or block the tool."),
            _ => context.t("Check the server log."),
        };
        text.to_owned()
    }

    /// Returns the page where the item can be resolved.
    fn place(&self) -> Option<String> {
        let name = crate::api::part(&self.name);
        Some(match &*self.kind {
            "module" | "login" => format!("/ui/modules/{name}"),
            "account" => "/ui/accounts".into(),
            "client" => "/ui/access".into(),
            "pin" => format!("/ui/pins/{name}"),
            "audit" => "/ui/audit".into(),
            _ => return None,
        })
    }
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    context: &'a PageContext,
    status: Option<Status>,
    modules: Vec<Module>,
    chart: String,
}

impl HomePage<'_> {
    fn uptime(&self) -> String {
        let seconds = self.status.as_ref().map_or(0, |status| status.uptime_seconds);
        match seconds {
            0..3_600 => self.context.tn("{} min", seconds / 60),
            3_600..172_800 => self.context.tn("{} h", seconds / 3600),
            _ => self.context.tn("{} days", seconds / 86_400),
        }
    }
}

pub(crate) async fn show(context: PageContext) -> PageResult {
    let status: Option<Status> = if context.visitor.is_admin { context.get("/v1/status").await.ok() } else { None };
    let Modules { modules } = context.get("/v1/modules").await.or_error_page(&context)?;
    let chart = chart(&context, status.as_ref());
    page(&HomePage { context: &context, status, modules, chart })
}

fn chart(context: &PageContext, status: Option<&Status>) -> String {
    let days = status.map(|status| &*status.saved.days).unwrap_or_default();
    if days.iter().all(|day| day.tokens_saved == 0) {
        return String::new();
    }
    let bars: Vec<Bar> = days
        .iter()
        .map(|day| Bar {
            label: day.day.get(5..).unwrap_or(&day.day).to_owned(),
            amount: day.tokens_saved,
            amount_text: format!("{} · {} / {}", number::grouped(day.tokens_saved), day.calls, day.errors),
        })
        .collect();
    chart::bars(context.t("Tokens saved per day"), &bars)
}

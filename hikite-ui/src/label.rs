//! Display names of API values in the language of the page. Unknown values are shown unchanged.

use hikite_core::switch::DisabledReason;

use crate::context::PageContext;

/// Returns the display name of a state.
pub(crate) fn state(context: &PageContext, state: &str) -> String {
    let name = match state {
        "running" => context.t("Running"),
        "idle" => context.t("Idle"),
        "failing" => context.t("Failing"),
        "needs_login" | "needs login" => context.t("Login required"),
        "disabled" => context.t("Disabled"),
        "starting" => context.t("Starting"),
        "connected" => context.t("Connected"),
        "reconnect" => context.t("Reconnect required"),
        "unverified" => context.t("Not verified"),
        "pending" => context.t("Pending approval"),
        "active" => context.t("Active"),
        "changed" => context.t("Changed"),
        "new" => context.t("New"),
        "blocked" => context.t("Blocked"),
        "ok" => context.t("Approved"),
        other => other,
    };
    name.to_owned()
}

/// Returns the CSS tone of a state or outcome.
pub(crate) fn tone(state: &str) -> &'static str {
    match state {
        "running" | "connected" | "active" | "ok" | "allowed" => "good",
        "idle" | "starting" => "accent",
        "needs_login" | "needs login" | "reconnect" | "unverified" | "pending" | "changed" | "new" => "warn",
        "failing" | "blocked" | "refused" | "error" => "alarm",
        _ => "",
    }
}

/// Returns the display name of a module's kind.
pub(crate) fn module_kind(context: &PageContext, kind: &str) -> String {
    let name = match kind {
        "stdio" => context.t("Local program (stdio)"),
        "http" => context.t("HTTP server"),
        "sse" => context.t("SSE server"),
        "service" => context.t("Service"),
        "registered" => context.t("Registered tools"),
        "program" => context.t("Built into the program"),
        other => other,
    };
    name.to_owned()
}

pub(crate) fn risk(context: &PageContext, risk: &str) -> String {
    let name = match risk {
        "read" => context.t("Read-only"),
        "write" => context.t("Write"),
        "destructive" => context.t("Destructive"),
        other => other,
    };
    name.to_owned()
}

pub(crate) fn role(context: &PageContext, role: &str) -> String {
    let name = match role {
        "owner" => context.t("Owner"),
        "admin" => context.t("Admin"),
        "member" => context.t("Member"),
        other => other,
    };
    name.to_owned()
}

/// Returns the display name of an audit record's kind.
pub(crate) fn audit_kind(context: &PageContext, kind: &str) -> String {
    let name = match kind {
        "call" => context.t("Tool call"),
        "batch" => context.t("Batch"),
        "search" => context.t("Search"),
        "read" => context.t("Resource read"),
        "prompt" => context.t("Prompt"),
        "admin" => context.t("Admin change"),
        "task" => context.t("Task"),
        "identity" => context.t("Login and access"),
        "trim" => context.t("Retention"),
        other => other,
    };
    name.to_owned()
}

pub(crate) fn decision(context: &PageContext, decision: &str) -> String {
    let name = match decision {
        "allowed" => context.t("Allowed"),
        "refused" => context.t("Refused"),
        other => other,
    };
    name.to_owned()
}

/// Returns the display name of an audit outcome or a task status. Error codes are shown unchanged.
pub(crate) fn outcome(context: &PageContext, outcome: &str) -> String {
    let name = match outcome {
        "ok" => context.t("OK"),
        "error" => context.t("Error"),
        "skipped" => context.t("Skipped"),
        "timeout" => context.t("Timed out"),
        "cancelled" => context.t("Cancelled"),
        "running" => context.t("In progress"),
        other => other,
    };
    name.to_owned()
}

pub(crate) fn pin_policy(context: &PageContext, policy: &str) -> String {
    let name = match policy {
        "off" => context.t("Off: definitions are not pinned"),
        "tofu" => context.t("Trust on first use (tofu)"),
        "strict" => context.t("Approve every new tool (strict)"),
        other => other,
    };
    name.to_owned()
}

/// Returns the display name of what an import does with an entry.
pub(crate) fn import_action(context: &PageContext, action: &str) -> String {
    let name = match action {
        "add" => context.t("Will be added"),
        "change" => context.t("Will be changed"),
        "same" => context.t("No change"),
        "refused" => context.t("Not imported"),
        "file" => context.t("Managed in config file"),
        other => other,
    };
    name.to_owned()
}

/// Returns the display name of a project's search setting; empty if it inherits the global one.
pub(crate) fn search(context: &PageContext, search: &str) -> String {
    let name = match search {
        "" => context.t("Inherit the global setting"),
        "off" => context.t("Off"),
        "bm25" => context.t("Keyword search (bm25)"),
        "hybrid" => context.t("Keyword and semantic search (hybrid)"),
        "cloud" => context.t("External search service (cloud)"),
        other => other,
    };
    name.to_owned()
}

/// Translates the reason why a tool is disabled. The API returns it as text, so it is compared with the texts of the
/// core.
pub(crate) fn disabled_reason(context: &PageContext, reason: &str) -> String {
    if reason == DisabledReason::File.reason() {
        return context.t("Disabled in the config file. Enable it there.").to_owned();
    }
    if reason == DisabledReason::Switch.reason() {
        return context.t("Disabled by an admin.").to_owned();
    }
    if let Some(tool) = named_in(&DisabledReason::DependencyMissing(PLACEHOLDER.into()), reason) {
        return context.tn("Needs {}, which is not registered. Register it first.", tool);
    }
    if let Some(tool) = named_in(&DisabledReason::DependencyDisabled(PLACEHOLDER.into()), reason) {
        return context.tn("Needs {}, which is disabled. Enable it first.", tool);
    }
    reason.to_owned()
}

/// Stands for the name of a tool in a reason; no name contains it.
const PLACEHOLDER: &str = "\u{0}";

/// Returns the tool that a reason names, if the reason has the same wording as `template`.
fn named_in<'a>(template: &DisabledReason, reason: &'a str) -> Option<&'a str> {
    let wording = template.reason();
    let (before, after) = wording.split_once(PLACEHOLDER)?;
    reason.strip_prefix(before)?.strip_suffix(after)
}

/// Translates the explanation of a search hit, part by part.
pub(crate) fn explanation(context: &PageContext, explanation: &str) -> String {
    let part = |part: &str| {
        let rest = |prefix: &str| part.strip_prefix(prefix).map(str::to_owned);
        if let Some(words) = rest("name: ") {
            context.tn("name: {}", words)
        } else if let Some(words) = rest("module: ") {
            context.tn("module: {}", words)
        } else if let Some(words) = rest("description: ") {
            context.tn("description: {}", words)
        } else if let Some(words) = rest("parameters: ") {
            context.tn("parameters: {}", words)
        } else if let Some(similarity) = rest("semantic similarity ").or_else(|| rest("meaning ")) {
            context.tn("semantic similarity: {}", similarity)
        } else if part.starts_with("named in the ") {
            context.t("named in the query").to_owned()
        } else if part.starts_with("used before") {
            context.t("used before for a similar query").to_owned()
        } else {
            part.to_owned()
        }
    };
    explanation.split("; ").map(part).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use hikite_core::language::Language;

    use super::*;

    #[test]
    fn reasons_of_the_core_are_translated_and_others_unchanged() {
        let context = PageContext::for_test(Language::Japanese);
        let missing = DisabledReason::DependencyMissing("a:b".into()).reason();
        assert_eq!(disabled_reason(&context, &missing), "a:b が必要ですが、登録されていません。先に登録してください。");
        let off = DisabledReason::DependencyDisabled("a:b".into()).reason();
        assert_eq!(disabled_reason(&context, &off), "a:b が必要ですが、無効です。先に有効にしてください。");
        for reason in [DisabledReason::File, DisabledReason::Switch] {
            assert_ne!(disabled_reason(&context, &reason.reason()), reason.reason());
        }
        assert_eq!(disabled_reason(&context, "something else"), "something else");
    }

    #[test]
    fn each_part_of_an_explanation_is_translated() {
        let context = PageContext::for_test(Language::Japanese);
        let explained =
            explanation(&context, "name: create, issue; semantic similarity 0.82; used before for a similar query; x");
        assert_eq!(explained, "名前: create, issue · 意味の近さ: 0.82 · 類似の検索で使用実績あり · x");
    }
}

//! Review of a module file before use: all errors, and warnings about likely mistakes.

use std::collections::HashSet;

use hikite_core::risk::Risk;
use hikite_core::violation::{Violation, step};

use super::tool::{ServiceTool, ToolReader};
use super::{Service, ServiceSettings};
use crate::expression::Expression;
use crate::file::{GroupNames, ModuleFile, PaginationUsage, ServiceToolFile};
use crate::jq::JqProgram;

/// Maximum number of names in a warning.
const NAMES: usize = 5;

/// A valid module file with its warnings.
#[derive(Debug)]
pub struct ModuleReview {
    pub service: Service,
    /// Findings that do not prevent its use.
    pub warnings: Vec<Violation>,
}

/// Parses a module file and compiles all its programs. Returns all errors at once.
pub fn review(yaml: &str, settings: &ServiceSettings) -> Result<ModuleReview, Vec<Violation>> {
    let file = ModuleFile::read(yaml)?;
    let definitions = JqProgram::compile_with(&file.defs, ".", &[]).err();
    let definitions = definitions.map(|wrong| Violation::new("/defs", wrong.to_string()));
    let service = match Service::read(yaml, settings) {
        Ok(service) => service,
        Err(mut faults) => {
            // Invalid definitions make every program invalid.
            faults.extend(definitions.map_or_else(|| programs(&file), |wrong| vec![wrong]));
            return Err(faults);
        }
    };
    let faults = definitions.map_or_else(|| service.compile_errors(), |wrong| vec![wrong]);
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut warnings = Vec::from_iter(untranslated(&file));
    for (name, tool) in &service.tools {
        warnings.extend(of_tool(name, tool, file.tools.get(name)));
    }
    warnings.extend(unused(&file));
    Ok(ModuleReview { service, warnings })
}

/// Returns the compile errors of all tools that could be parsed.
fn programs(file: &ModuleFile) -> Vec<Violation> {
    let mut reader = ToolReader { file, definitions: file.defs.as_str().into(), faults: Vec::new() };
    let mut faults = Vec::new();
    for (name, written) in file.tools.iter() {
        let Some(tool) = reader.tool(name, written) else { continue };
        let wrong = tool.expressions().into_iter().filter_map(Expression::compile_error);
        faults.extend(wrong.map(|wrong| Violation::new(format!("/tools{}", step(name)), wrong)));
    }
    faults
}

fn of_tool(name: &str, tool: &ServiceTool, written: Option<&ServiceToolFile>) -> Vec<Violation> {
    let at = format!("/tools{}", step(name));
    let mut warnings = Vec::new();
    if tool.risk == Risk::Read && !tool.has_output_shape() {
        warnings.push(Violation::new(at.clone(), "reads without `out`: responses are shown unchanged"));
    }
    let used = tool.variables();
    let own = written.into_iter().flat_map(|written| written.params.names());
    for parameter in own.filter(|name| !used.contains(name)) {
        let at = format!("{at}/params{}", step(parameter));
        warnings.push(Violation::new(at, "this parameter is not used"));
    }
    warnings
}

/// Returns one warning for all untranslated tools, so that a file in one language is not flooded with them.
fn untranslated(file: &ModuleFile) -> Option<Violation> {
    let names: Vec<&str> =
        file.tools.iter().filter(|(_, tool)| !tool.description.is_in_both()).map(|(name, _)| name).collect();
    let shown = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| Violation::new("/tools", format!("no Japanese text: {shown}{more}")))
}

/// Returns warnings for unused groups and pagination styles.
fn unused(file: &ModuleFile) -> Vec<Violation> {
    let (mut groups, mut pages) = (HashSet::new(), HashSet::new());
    for (_, tool) in file.tools.iter() {
        match &tool.group {
            None => {}
            Some(GroupNames::One(name)) => drop(groups.insert(name.as_str())),
            Some(GroupNames::Several(names)) => groups.extend(names.iter().map(String::as_str)),
        }
        let usages = [&tool.pages]
            .into_iter()
            .chain(tool.choose.iter().map(|branch| &branch.pages))
            .chain(tool.steps.iter().map(|one| &one.pages));
        pages.extend(usages.flatten().map(|usage: &PaginationUsage| usage.name.as_str()));
        let below = [&tool.recurse]
            .into_iter()
            .chain(tool.choose.iter().map(|branch| &branch.recurse))
            .chain(tool.steps.iter().map(|one| &one.recurse));
        pages.extend(below.flatten().filter_map(|recursion| recursion.pages.as_deref()));
    }
    let told = |kind: &str, name: &str| Violation::new(format!("/{kind}{}", step(name)), "is not used by any tool");
    let lonely = file.groups.names().filter(|name| !groups.contains(name)).map(|name| told("groups", name));
    lonely.chain(file.pages.names().filter(|name| !pages.contains(name)).map(|name| told("pages", name))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::settings;
    use super::*;

    const FILE: &str = r#"
module: shop
title: Shop
description: A shop
base: https://shop.example
groups: { lonely: { x: "string" } }
pages: { number: { style: page, page: page, size: per, items: . } }
defs: "def short: .[0:7];"
tools:
  list:
    risk: read
    description: { en: Lists, ja: 一覧 }
    params: { q: "string | Words", spare: "string" }
    request: { GET: "/things", query: { q: "=$q | short" } }
  add:
    risk: write
    description: Adds
    params: { name: "string!" }
    request: { POST: "/things", body: { name: $name } }
"#;

    #[track_caller]
    fn check(changed: &[(&str, &str)], expected: &[&str]) {
        let file = changed.iter().fold(FILE.to_owned(), |file, (old, new)| {
            assert!(file.contains(old), "{old}");
            file.replace(old, new)
        });
        let told = match review(&file, &settings()) {
            Ok(review) => review.warnings,
            Err(faults) => faults,
        };
        let told: Vec<String> = told.iter().map(|fault| format!("{}: {}", fault.pointer, fault.message)).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_right_but_hardly_meant_is_told() {
        check(
            &[],
            &[
                "/tools: no Japanese text: add",
                "/tools/list: reads without `out`: responses are shown unchanged",
                "/tools/list/params/spare: this parameter is not used",
                "/groups/lonely: is not used by any tool",
                "/pages/number: is not used by any tool",
            ],
        );
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        check(
            &[("| short", "| shrt"), ("POST: \"/things\"", "POST: \"things\"")],
            &[
                "/tools/add/request: a path starts with `/` and has no query, no `.` and no `..`",
                "/tools/list: `$q | shrt`: line 1, column 6: unknown filter `shrt` with 0 arguments",
            ],
        );
        check(
            &[("risk: write", "risk: wild"), ("title: Shop", "tilte: Shop")],
            &[
                "/title: is missing",
                "/tools/add/risk: expected one of \"read\", \"write\", \"destructive\"",
                "/tilte: there is no such member",
            ],
        );
    }

    #[test]
    fn wrong_definitions_are_told_once() {
        check(&[("def short: .[0:7];", "def short .[0:7];")], &["/defs: the definitions cannot be read"]);
    }

    #[test]
    fn programs_of_paging_are_looked_at() {
        let paged = ("query: { q: \"=$q | short\" } }", "query: { q: $q } }\n    pages: { use: number, default: 1 }");
        check(
            &[paged, ("items: . }", "items: ., more: \".a | nope\" }")],
            &["/tools/list: `.a | nope`: line 1, column 6: unknown filter `nope` with 0 arguments"],
        );
    }
}

//! Tool of a module, parsed once: its requests and its output shapes. All errors in its description are reported here.

use std::collections::HashSet;
use std::sync::Arc;

use hikite_core::plan;
use hikite_core::risk::Risk;
use hikite_core::suggestion::did_you_mean;
use hikite_core::violation::{Violation, step};
use serde_json::Value;

use super::page::Paginator;
use super::parameter;
#[cfg(test)]
use super::request::RequestTemplate;
use super::shape::OutputShape;
use super::tool_request::{ToolRequest, ToolRequestParts};
use crate::expression::{Expression, ExpressionNames};
use crate::file::{LocalizedText, ModuleFile, OutputFiles, RiskFile, ServiceToolFile, StepFile};

/// Variables available beside parameters and steps.
const BUILTIN_VARIABLES: [&str; 4] = ["each", "item", "last", "call_id"];

#[derive(Debug)]
pub(crate) struct ServiceTool {
    pub(crate) risk: Risk,
    pub(crate) description: LocalizedText,
    pub(crate) schema: Value,
    pub(crate) one_of: Vec<String>,
    pub(crate) work: ToolExecution,
}

/// Ways to produce a result.
#[derive(Debug)]
pub(crate) enum ToolExecution {
    Compute {
        value: Expression,
        shapes: Vec<OutputShape>,
    },
    /// The first choice whose condition holds.
    Choose(Vec<RequestChoice>),
    Steps {
        steps: Vec<StepRule>,
        waves: Vec<Vec<usize>>,
        shapes: Vec<OutputShape>,
    },
}

#[derive(Debug)]
pub(crate) struct RequestChoice {
    pub(crate) when: Option<Expression>,
    pub(crate) tool_request: ToolRequest,
    pub(crate) shapes: Vec<OutputShape>,
}

#[derive(Debug)]
pub(crate) struct StepRule {
    pub(crate) id: String,
    pub(crate) when: Option<Expression>,
    pub(crate) each: Option<Expression>,
    pub(crate) values: Vec<(String, Expression)>,
    pub(crate) tool_request: ToolRequest,
}

/// Parser for the tools of one file.
pub(crate) struct ToolReader<'a> {
    pub(crate) file: &'a ModuleFile,
    pub(crate) definitions: Arc<str>,
    pub(crate) faults: Vec<Violation>,
}

impl ToolReader<'_> {
    pub(crate) fn tool(&mut self, name: &str, written: &ServiceToolFile) -> Option<ServiceTool> {
        let at = format!("/tools{}", step(name));
        let before = self.faults.len();
        let usages = [&written.pages].into_iter().chain(written.choose.iter().map(|branch| &branch.pages));
        let usage = usages.flatten().next();
        let plain = self.names(HashSet::new());
        let pager = usage.and_then(|usage| Some((self.pager(&at, &usage.name, &plain)?, usage.default)));
        let schema = parameter::schema(self.file, written, pager.as_ref().map(|(pager, size)| (&**pager, *size)));
        let schema = schema.unwrap_or_else(|wrong| {
            for (parameter, message) in wrong {
                self.fault(format!("{at}/params{}", step(&parameter)), message);
            }
            Value::Null
        });
        let mut variables: HashSet<String> = BUILTIN_VARIABLES.map(str::to_owned).into();
        variables.extend(schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()));
        for name in written.one_of.iter().filter(|name| !variables.contains(*name)) {
            self.faults.push(Violation::new(format!("{at}/one_of"), format!("`{name}` is not a parameter")));
        }
        for one in &written.steps {
            variables.insert(one.id.clone());
            variables.extend(one.values.names().map(str::to_owned));
        }
        let names = self.names(variables);
        let work = self.work(&at, written, &names)?;
        let risk = match written.risk {
            RiskFile::Read => Risk::Read,
            RiskFile::Write => Risk::Write,
            RiskFile::Destructive => Risk::Destructive,
        };
        let description = written.description.clone();
        let tool = ServiceTool { risk, description, schema, one_of: written.one_of.clone(), work };
        (self.faults.len() == before).then_some(tool)
    }

    fn work(&mut self, at: &str, written: &ServiceToolFile, names: &ExpressionNames) -> Option<ToolExecution> {
        let shapes = self.shapes(&format!("{at}/out"), written.out.as_ref(), names);
        let ways = [
            written.compute.is_some(),
            !written.choose.is_empty(),
            !written.steps.is_empty(),
            written.request.is_some(),
        ];
        if ways.into_iter().filter(|is_present| *is_present).count() != 1 {
            self.fault(at.to_owned(), "a tool must have exactly one of `request`, `choose`, `steps` and `compute`");
            return None;
        }
        if let Some(text) = &written.compute {
            return Some(ToolExecution::Compute { value: Expression::new(text, names), shapes });
        }
        if let Some(request) = &written.request {
            let parts = ToolRequestParts {
                request,
                pages: written.pages.as_ref(),
                recurse: written.recurse.as_ref(),
                chunk: written.chunk.as_ref(),
                result: written.result.as_deref(),
            };
            let tool_request = self.tool_request(at, &parts, names)?;
            return Some(ToolExecution::Choose(vec![RequestChoice { when: None, tool_request, shapes }]));
        }
        if !written.steps.is_empty() {
            return self.steps(at, &written.steps, names, shapes);
        }
        let mut choices = Vec::new();
        for (place, branch) in written.choose.iter().enumerate() {
            let at = format!("{at}/choose/{place}");
            let parts = ToolRequestParts {
                request: &branch.request,
                pages: branch.pages.as_ref().or(written.pages.as_ref()),
                recurse: branch.recurse.as_ref().or(written.recurse.as_ref()),
                chunk: branch.chunk.as_ref().or(written.chunk.as_ref()),
                result: branch.result.as_deref().or(written.result.as_deref()),
            };
            let out = branch.out.as_ref().or(written.out.as_ref());
            let shapes = self.shapes(&format!("{at}/out"), out, names);
            let when = branch.when.as_ref().map(|when| Expression::new(when, names));
            choices.push(RequestChoice { when, tool_request: self.tool_request(&at, &parts, names)?, shapes });
        }
        Some(ToolExecution::Choose(choices))
    }

    fn steps(
        &mut self,
        at: &str,
        written: &[StepFile],
        names: &ExpressionNames,
        shapes: Vec<OutputShape>,
    ) -> Option<ToolExecution> {
        let mut steps = Vec::new();
        for (place, one) in written.iter().enumerate() {
            let parts = ToolRequestParts {
                request: &one.request,
                pages: one.pages.as_ref(),
                recurse: one.recurse.as_ref(),
                chunk: one.chunk.as_ref(),
                result: one.result.as_deref(),
            };
            let expression = |text: &String| Expression::new(text, names);
            steps.push(StepRule {
                id: one.id.clone(),
                when: one.when.as_ref().map(expression),
                each: one.each.as_ref().map(expression),
                values: one.values.iter().map(|(name, text)| (name.to_owned(), expression(text))).collect(),
                tool_request: self.tool_request(&format!("{at}/steps/{place}"), &parts, names)?,
            });
        }
        let after: Vec<Vec<usize>> = steps.iter().map(|rule| rule.after(&steps)).collect();
        let after: Vec<&[usize]> = after.iter().map(Vec::as_slice).collect();
        let Some(waves) = plan::waves(&after) else {
            self.fault(format!("{at}/steps"), "the steps form a dependency cycle");
            return None;
        };
        Some(ToolExecution::Steps { steps, waves, shapes })
    }

    fn tool_request(&mut self, at: &str, parts: &ToolRequestParts<'_>, names: &ExpressionNames) -> Option<ToolRequest> {
        let pager = match parts.pages {
            Some(usage) => Some((self.pager(at, &usage.name, names)?, usage.default)),
            None => None,
        };
        let nested_list = match parts.recurse.and_then(|recurse| recurse.pages.as_ref()) {
            Some(name) => Some(self.pager(at, name, names)?),
            None => None,
        };
        match ToolRequest::new(parts, pager, nested_list, names) {
            Ok(tool_request) => Some(tool_request),
            Err(wrong) => {
                self.fault(format!("{at}/request"), wrong);
                None
            }
        }
    }

    fn pager(&mut self, at: &str, name: &str, names: &ExpressionNames) -> Option<Arc<Paginator>> {
        let Some(page) = self.file.pages.get(name) else {
            let near = did_you_mean(name, self.file.pages.names()).unwrap_or_default();
            self.fault(format!("{at}/pages/use"), format!("`{name}` is not a paging style. {near}"));
            return None;
        };
        match Paginator::new(page, names) {
            Ok(pager) => Some(Arc::new(pager)),
            Err(wrong) => {
                self.fault(format!("/pages{}", step(name)), wrong);
                None
            }
        }
    }

    fn shapes(&mut self, at: &str, outs: Option<&OutputFiles>, names: &ExpressionNames) -> Vec<OutputShape> {
        let mut shapes = Vec::new();
        for out in outs.map(OutputFiles::all).unwrap_or_default() {
            match OutputShape::new(out, names) {
                Ok(shape) => shapes.push(shape),
                Err(wrong) => self.fault(at.to_owned(), wrong),
            }
        }
        shapes
    }

    pub(crate) fn names(&self, variables: HashSet<String>) -> ExpressionNames {
        ExpressionNames { definitions: Arc::clone(&self.definitions), variables: Arc::new(variables) }
    }

    pub(crate) fn fault(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Violation::new(pointer, message));
    }
}

impl ServiceTool {
    /// Returns all expressions, so that they can be compiled ahead of use.
    pub(crate) fn expressions(&self) -> Vec<&Expression> {
        let mut found = Vec::new();
        let shapes = match &self.work {
            ToolExecution::Compute { value, shapes } => {
                found.push(value);
                shapes.as_slice()
            }
            ToolExecution::Choose(choices) => {
                for choice in choices {
                    found.extend(&choice.when);
                    choice.tool_request.expressions(&mut found);
                    for shape in &choice.shapes {
                        shape.expressions(&mut found);
                    }
                }
                &[]
            }
            ToolExecution::Steps { steps, shapes, .. } => {
                for rule in steps {
                    rule.expressions(&mut found);
                }
                shapes.as_slice()
            }
        };
        for shape in shapes {
            shape.expressions(&mut found);
        }
        found
    }

    /// Returns all variables that it uses.
    pub(crate) fn variables(&self) -> HashSet<&str> {
        let mut found: Vec<&str> = self.expressions().into_iter().flat_map(Expression::variables).collect();
        match &self.work {
            ToolExecution::Compute { .. } => {}
            ToolExecution::Choose(choices) => {
                for choice in choices {
                    choice.tool_request.variables(&mut found);
                }
            }
            ToolExecution::Steps { steps, .. } => {
                for rule in steps {
                    rule.tool_request.variables(&mut found);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Returns the kinds of its output shapes, without duplicates.
    pub(crate) fn forms(&self) -> Vec<&'static str> {
        let shapes: Vec<&OutputShape> = match &self.work {
            ToolExecution::Compute { shapes, .. } | ToolExecution::Steps { shapes, .. } => shapes.iter().collect(),
            ToolExecution::Choose(choices) => choices.iter().flat_map(|choice| &choice.shapes).collect(),
        };
        let mut forms: Vec<&str> = Vec::new();
        for shape in shapes {
            if !forms.contains(&shape.kind_name()) {
                forms.push(shape.kind_name());
            }
        }
        forms
    }

    /// Returns all its requests, except those for nested lists.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> Vec<&RequestTemplate> {
        match &self.work {
            ToolExecution::Compute { .. } => Vec::new(),
            ToolExecution::Choose(choices) => choices.iter().map(|choice| &choice.tool_request.request).collect(),
            ToolExecution::Steps { steps, .. } => steps.iter().map(|step| &step.tool_request.request).collect(),
        }
    }

    pub(crate) fn is_paged(&self) -> bool {
        self.schema["properties"].get("fetch_all").is_some()
    }

    pub(crate) fn has_output_shape(&self) -> bool {
        match &self.work {
            ToolExecution::Compute { shapes, .. } | ToolExecution::Steps { shapes, .. } => !shapes.is_empty(),
            ToolExecution::Choose(choices) => choices.iter().all(|choice| !choice.shapes.is_empty()),
        }
    }
}

impl StepRule {
    fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        found.extend(&self.when);
        found.extend(&self.each);
        found.extend(self.values.iter().map(|(_, value)| value));
        self.tool_request.expressions(found);
    }

    /// Returns the indices of the steps that it depends on.
    fn after(&self, steps: &[Self]) -> Vec<usize> {
        let mut expressions = Vec::new();
        self.expressions(&mut expressions);
        let mut named: Vec<&str> = expressions.into_iter().flat_map(Expression::variables).collect();
        self.tool_request.variables(&mut named);
        let is_named = |other: &Self| other.id != self.id && named.contains(&other.id.as_str());
        steps.iter().enumerate().filter(|(_, other)| is_named(other)).map(|(place, _)| place).collect()
    }
}

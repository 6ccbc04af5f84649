//! Builds a service from a module file and reports all violations at once.

use std::collections::HashSet;
use std::sync::Arc;

use hikite_core::violation::{Violation, step};
use http::{HeaderMap, HeaderValue};

use super::account::{BaseUrls, SiteLookup};
use super::prompt::ServicePrompt;
use super::rate_limiter::RateLimiters;
use super::request::{self, RequestTemplate};
use super::resource::ServiceResource;
use super::send::{ErrorExpressions, RetryRules};
use super::tool::{ServiceTool, ToolReader};
use super::{Service, ServiceSettings};
use crate::expression::{Expression, ExpressionNames};
use crate::file::{ModuleFile, ResponseFormat, ServiceRequestFile, VerifyFile};
use crate::scope::VariableScope;

impl Service {
    /// Parses a module file. Returns all violations at once; jq programs are compiled later.
    pub fn read(yaml: &str, settings: &ServiceSettings) -> Result<Self, Vec<Violation>> {
        let file = ModuleFile::read(yaml)?;
        let mut reader = ToolReader { file: &file, definitions: file.defs.as_str().into(), faults: Vec::new() };
        let mut tools = Vec::new();
        for (name, written) in file.tools.iter() {
            if let Some(tool) = reader.tool(name, written) {
                tools.push((name.to_owned(), tool));
            }
        }
        let names = reader.names(HashSet::new());
        let resources = resources(&file, &tools, &mut reader);
        let mut prompts = Vec::new();
        for (name, written) in file.prompts.iter() {
            match ServicePrompt::new(name, written) {
                Ok(prompt) => prompts.push(prompt),
                Err(wrong) => reader.fault(format!("/prompts{}", step(name)), wrong),
            }
        }
        let headers = headers(&file, &mut reader, &names);
        if !is_name(&file.module) {
            reader.fault("/module", "a name may contain lowercase letters, digits and `_`, and starts with a letter");
        }
        let probe = probe(&file, &mut reader, &names);
        let addresses = BaseUrls::new(file.base.clone(), file.resolve.iter(), &names);
        let addresses = match addresses {
            Ok(addresses) if reader.faults.is_empty() => addresses,
            Ok(_) => return Err(reader.faults),
            Err(wrong) => {
                reader.fault("/base", wrong);
                return Err(reader.faults);
            }
        };
        let expression = |text: &Option<String>| text.as_ref().map(|text| Expression::new(text, &names));
        let mut service = Self {
            name: file.module.as_str().into(),
            title: file.title.clone(),
            description: file.description.get(settings.language).to_owned(),
            provider: file.provider.as_deref().map(Into::into),
            addresses,
            probe,
            headers,
            rate_limiters: RateLimiters::new(&file.limits),
            retry: RetryRules { also: expression(&file.retry.also), rule: file.retry.clone() },
            error_expressions: ErrorExpressions {
                message: expression(&file.errors.message),
                code: expression(&file.errors.code),
            },
            tools,
            resources,
            prompts,
            listing: Arc::default(),
            language: settings.language,
            client: settings.client.clone(),
            credential_provider: Arc::clone(&settings.credential_provider),
            answer_bytes: settings.limits.answer_bytes,
        };
        service.listing = Arc::new(service.offer(file.api_version.as_deref(), file.docs.as_deref()));
        Ok(service)
    }

    /// Returns the compile errors of all jq programs.
    pub fn compile_errors(&self) -> Vec<Violation> {
        let mut faults = Vec::new();
        for (name, tool) in &self.tools {
            let wrong = tool.expressions().into_iter().filter_map(Expression::compile_error);
            faults.extend(wrong.map(|wrong| Violation::new(format!("/tools{}", step(name)), wrong)));
        }
        let mut of_probe = Vec::new();
        self.probe.iter().for_each(|probe| probe.expressions(&mut of_probe));
        let of_probe = of_probe.into_iter().filter_map(Expression::compile_error);
        faults.extend(of_probe.map(|wrong| Violation::new("/verify", wrong)));
        let others =
            [&self.retry.also, &self.error_expressions.message, &self.error_expressions.code].into_iter().flatten();
        let lookups = self.addresses.lookups.iter().flat_map(SiteLookup::expressions);
        faults
            .extend(others.chain(lookups).filter_map(Expression::compile_error).map(|wrong| Violation::new("", wrong)));
        faults
    }
}

fn resources(file: &ModuleFile, tools: &[(String, ServiceTool)], reader: &mut ToolReader<'_>) -> Vec<ServiceResource> {
    let mut resources = Vec::new();
    for (name, written) in file.resources.iter() {
        let at = format!("/resources{}", step(name));
        let resource = match ServiceResource::new(name, written) {
            Ok(resource) => resource,
            Err(wrong) => {
                reader.fault(at, wrong);
                continue;
            }
        };
        match tools.iter().find(|(tool, _)| *tool == resource.tool) {
            None => {
                let message = format!("`{}` is not a tool of this module", resource.tool);
                reader.fault(format!("{at}/tool"), message);
            }
            Some((_, tool)) => {
                for name in resource.names().filter(|name| tool.schema["properties"].get(name).is_none()) {
                    reader
                        .fault(format!("{at}/uri"), format!("`{{{name}}}` is not a parameter of `{}`", resource.tool));
                }
            }
        }
        resources.push(resource);
    }
    resources
}

/// Builds the verification request, if the file has one.
fn probe(file: &ModuleFile, reader: &mut ToolReader<'_>, names: &ExpressionNames) -> Option<RequestTemplate> {
    let VerifyFile { get, query } = file.verify.as_ref()?;
    if file.provider.is_none() {
        reader.fault("/verify", "without `provider` there is no credential to verify");
    }
    let request = ServiceRequestFile {
        get: Some(get.clone()),
        query: query.clone(),
        answer: ResponseFormat::Auto,
        ..ServiceRequestFile::default()
    };
    RequestTemplate::new(&request, names).map_err(|wrong| reader.fault("/verify", wrong)).ok()
}

fn headers(file: &ModuleFile, reader: &mut ToolReader<'_>, names: &ExpressionNames) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in file.headers.iter() {
        let made = request::header(name, value, names).and_then(|(header, places)| {
            let value = places.header(&VariableScope::default()).map_err(|error| error.message.to_string())?;
            Ok((header, HeaderValue::try_from(value).map_err(|_| "it cannot be sent in a header".to_owned())?))
        });
        match made {
            Ok((header, value)) => drop(headers.insert(header, value)),
            Err(wrong) => reader.fault(format!("/headers{}", step(name)), wrong),
        }
    }
    headers
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

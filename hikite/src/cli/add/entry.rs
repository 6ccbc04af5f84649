//! The entry of a new server: from the arguments, or from the catalog with the variables that it needs.

use std::io::IsTerminal;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::{AddArgs, ServerScope, ask};
use crate::cli::catalog::{CatalogField, CatalogPackage, CatalogRemote, CatalogServer};

/// A server to add: its name and its entry in `mcpServers`.
#[derive(Debug)]
pub(super) struct NewServer {
    pub(super) name: String,
    pub(super) entry: Value,
    /// Messages for the user.
    pub(super) notes: Vec<String>,
}

/// Checks a name for both scopes.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=64).contains(&name.len()) && name.chars().all(is_allowed) {
        return Ok(());
    }
    bail!("`{name}` is not a name: it may contain letters, digits, `-` and `_`, and at most 64 characters.")
}

pub(super) fn from_arguments(args: &AddArgs, name: String) -> Result<NewServer> {
    let mut entry = match (&args.url, args.command.split_first()) {
        (Some(url), None) => {
            if !args.env.is_empty() {
                bail!("`--env` is for programs; a remote server gets `--header`.");
            }
            remote(url, headers(&args.header)?)?
        }
        (None, Some((command, rest))) => {
            if !args.header.is_empty() {
                bail!("`--header` is for remote servers; a program gets `--env`.");
            }
            program(command, rest, environment(args, &args.env)?)
        }
        (Some(_), Some(_)) => bail!("A server is either a program or an address, not both."),
        (None, None) => bail!(
            "Neither a program nor an address is given.\nhint: Write `hikite add {name} https://…` or `hikite add {name} -- \
             COMMAND`."
        ),
    };
    describe(&mut entry, args.description.as_deref());
    Ok(NewServer { name, entry, notes: Vec::new() })
}

pub(super) fn from_catalog(args: &AddArgs, server: &CatalogServer) -> Result<NewServer> {
    if args.url.is_some() {
        bail!("`--from` takes the address from the catalog.");
    }
    let name = args.name.clone().unwrap_or_else(|| default_name(&server.name));
    let mut inputs = FieldValues { args, missing: Vec::new() };
    let (mut entry, note) = match server.choose(args.package.as_deref())? {
        (Some(package), _) => of_package(&mut inputs, package)?,
        (None, Some(remote)) => of_remote(&mut inputs, remote)?,
        (None, None) => bail!("`{}` has no package or address that hikite can use.", server.name),
    };
    if !inputs.missing.is_empty() {
        bail!("`{}` needs more:\n{}", server.name, inputs.missing.join("\n"));
    }
    let description = args.description.as_deref().or(Some(server.description.as_str()).filter(|text| !text.is_empty()));
    describe(&mut entry, description);
    Ok(NewServer { name, entry, notes: vec![note] })
}

fn program(command: &str, arguments: &[String], env: Map<String, Value>) -> Value {
    let mut entry = json!({ "command": command });
    if !arguments.is_empty() {
        entry["args"] = json!(arguments);
    }
    if !env.is_empty() {
        entry["env"] = Value::Object(env);
    }
    entry
}

fn remote(url: &str, headers: Map<String, Value>) -> Result<Value> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        bail!("`{url}` is not an address.\nhint: Write it as `https://…`, or a program after `--`.");
    }
    let mut entry = json!({ "url": url });
    if !headers.is_empty() {
        entry["headers"] = Value::Object(headers);
    }
    Ok(entry)
}

fn describe(entry: &mut Value, description: Option<&str>) {
    if let Some(description) = description {
        entry["description"] = description.into();
    }
}

fn headers(written: &[String]) -> Result<Map<String, Value>> {
    let header = |text: &String| match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().into())),
        _ => bail!("`{text}` is not a header.\nhint: Write `Name: value`."),
    };
    written.iter().map(header).collect()
}

/// Returns the variables. One without a value refers to hikite's environment; the store gets its present value.
fn environment(args: &AddArgs, written: &[String]) -> Result<Map<String, Value>> {
    let variable = |text: &String| match text.split_once('=') {
        Some(("", _)) => bail!("`{text}` is not a variable.\nhint: Write `NAME=VALUE`."),
        Some((name, value)) => Ok((name.to_owned(), value.into())),
        None => Ok((text.clone(), from_environment(args.scope, text)?.into())),
    };
    written.iter().map(variable).collect()
}

fn from_environment(scope: ServerScope, name: &str) -> Result<String> {
    match (scope, std::env::var(name)) {
        (ServerScope::File, _) => Ok(format!("${{{name}}}")),
        (ServerScope::Store, Ok(value)) => Ok(value),
        (ServerScope::Store, Err(_)) => {
            bail!("The environment variable `{name}` is not set.\nhint: Write `{name}=VALUE`.")
        }
    }
}

/// Returns a name for hikite: the last part of the name in the catalog.
fn default_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).take(64).collect()
}

fn of_package(inputs: &mut FieldValues<'_>, package: &CatalogPackage) -> Result<(Value, String)> {
    let mut env = Map::new();
    for input in &package.environment_variables {
        if let Some(value) = inputs.variable(input)? {
            env.insert(input.name.clone(), value.into());
        }
    }
    for (name, value) in environment(inputs.args, &inputs.args.env)? {
        env.entry(name).or_insert(value);
    }
    let runtime_arguments = inputs.arguments(&package.runtime_arguments, true);
    let mut arguments = inputs.arguments(&package.package_arguments, !inputs.args.command.is_empty());
    arguments.extend(inputs.args.command.iter().cloned());
    let (command, arguments) = package.command_line(runtime_arguments, env.keys(), arguments)?;
    let line = std::iter::once(command).chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    Ok((program(command, &arguments, env), format!("It runs `{line}`.")))
}

fn of_remote(inputs: &mut FieldValues<'_>, offered: &CatalogRemote) -> Result<(Value, String)> {
    let mut url = offered.url.clone();
    for (name, input) in &offered.variables {
        let slot = format!("{{{name}}}");
        if url.contains(&slot) {
            let input = CatalogField { name: name.clone(), is_required: true, ..input.clone() };
            url = url.replace(&slot, &inputs.variable(&input)?.unwrap_or_default());
        }
    }
    let mut sent = headers(&inputs.args.header)?;
    for input in &offered.headers {
        let is_given = sent.keys().any(|name| name.eq_ignore_ascii_case(&input.name));
        if is_given {
            continue;
        }
        match &input.value {
            Some(value) if !value.contains('{') => {
                sent.insert(input.name.clone(), value.as_str().into());
            }
            _ if input.is_required => inputs.missing.push(format!("  --header '{}: …'{}", input.name, input.told())),
            _ => {}
        }
    }
    let entry = remote(&url, sent)?;
    Ok((entry, format!("It is at {url}.")))
}

/// Values for the inputs of a catalog entry: from `--env`, from the environment, or from the user at a terminal.
struct FieldValues<'a> {
    args: &'a AddArgs,
    /// Flags that are needed and missing, each with its description.
    missing: Vec<String>,
}

impl FieldValues<'_> {
    fn variable(&mut self, input: &CatalogField) -> Result<Option<String>> {
        let given = self.args.env.iter().find_map(|text| match text.split_once('=') {
            Some((name, value)) if name == input.name => Some(Ok(value.to_owned())),
            None if *text == input.name => Some(from_environment(self.args.scope, text)),
            _ => None,
        });
        if let Some(given) = given {
            return given.map(Some);
        }
        if let Some(value) = input.value.as_ref().filter(|value| !value.contains('{')) {
            return Ok(Some(value.clone()));
        }
        if !input.is_required {
            return Ok(None);
        }
        if std::env::var_os(&input.name).is_some() {
            return from_environment(self.args.scope, &input.name).map(Some);
        }
        if let Some(default) = &input.default {
            return Ok(Some(default.clone()));
        }
        if std::io::stdin().is_terminal() {
            let answer = ask::line(&format!("{}{}", input.name, input.told()))?;
            if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
                return Ok(Some(answer));
            }
        }
        self.missing.push(format!("  --env {}=…{}", input.name, input.told()));
        Ok(None)
    }

    /// Returns the arguments of a command line; a required one without a value is missing unless `are_given`.
    fn arguments(&mut self, inputs: &[CatalogField], are_given: bool) -> Vec<String> {
        let mut arguments = Vec::new();
        for input in inputs {
            let value = input.value.as_ref().or(input.default.as_ref()).filter(|value| !value.contains('{'));
            match (input.name.as_str(), value) {
                ("", Some(value)) => arguments.push(value.clone()),
                (name, Some(value)) if name.starts_with("--") => arguments.push(format!("{name}={value}")),
                (name, Some(value)) => arguments.extend([name.to_owned(), value.clone()]),
                (name, None) if input.is_required && !are_given => {
                    let label = if name.is_empty() { input.value_hint.as_deref().unwrap_or("VALUE") } else { name };
                    self.missing.push(format!("  -- … {label}{}", input.told()));
                }
                _ => {}
            }
        }
        arguments
    }
}

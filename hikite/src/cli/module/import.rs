//! `hikite module import-openapi`: generates a module file for chosen OpenAPI operations, to be reviewed by a person.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hikite_modules::openapi::{ApiDescription, ApiOperation, OperationFilter};
use serde_json::{Value, json};

use super::super::store_session::table;
use super::super::{note, print};
use super::{many, write_new};

/// Default maximum number of tools; with more, models choose badly.
const MOST: usize = 40;

#[derive(Debug, Args)]
pub(crate) struct ImportOpenapi {
    /// The description: OpenAPI 3.0 or 3.1, JSON or YAML
    file: PathBuf,
    /// The name of the module [default: from the title]
    #[arg(long, value_parser = super::name)]
    name: Option<String>,
    /// The ids of the operations, separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    operations: Vec<String>,
    /// The operations with this tag
    #[arg(long)]
    tag: Option<String>,
    /// The operations whose path starts with this
    #[arg(long, value_name = "PREFIX")]
    path: Option<String>,
    /// The maximum number of tools
    #[arg(long, value_name = "N", default_value_t = MOST)]
    max: usize,
    /// The file to write [default: print it]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// List the operations as JSON instead
    #[arg(long)]
    json: bool,
}

impl ImportOpenapi {
    pub(super) fn run(self) -> Result<()> {
        let shown = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).with_context(|| format!("cannot read `{shown}`"))?;
        let description = ApiDescription::read(&text).map_err(|wrong| anyhow!("{shown}: {wrong}"))?;
        let all = description.operations();
        let choice = OperationFilter { operations: self.operations, tag: self.tag, path: self.path };
        let chosen = choice.of(&all).map_err(|wrong| anyhow!("{wrong}"))?;
        if self.json {
            print(&chosen.iter().map(|operation| object(operation)).collect::<Value>().to_string());
            return Ok(());
        }
        if choice.is_empty() {
            list(&all, &shown);
            return Ok(());
        }
        if chosen.is_empty() {
            bail!(
                "No operation matches all filters.\nhint: `hikite module import-openapi {shown}` lists the operations."
            );
        }
        if chosen.len() > self.max {
            bail!(
                "{} operations are selected; the limit is {}.\nhint: Select fewer with `--operations`, `--tag` and \
                 `--path`, or raise the limit with `--max {}`.",
                chosen.len(),
                self.max,
                chosen.len()
            );
        }
        let name = self.name.unwrap_or_else(|| description.name());
        let made = description.module(&name, &chosen);
        let Some(out) = self.out else {
            print(made.trim_end());
            return Ok(());
        };
        write_new(&out, &made)?;
        let out = out.display();
        print(&format!("{out}: {}", many(chosen.len(), "tool")));
        note(&format!(
            "Review everything marked `guessed`, then run: hikite module check {out}\nPut the token in the config: \
             \"providers\": {{ \"{name}\": {{ \"token\": \"${{{}_TOKEN}}\" }} }}",
            name.to_uppercase()
        ));
        Ok(())
    }
}

/// Prints the operations and tags to choose from.
fn list(all: &[ApiOperation<'_>], file: &str) {
    let row = |operation: &ApiOperation<'_>| {
        let id = operation.id.unwrap_or(&operation.name).to_owned();
        vec![id, operation.tags.join(","), format!("{} {}", operation.method, operation.path)]
    };
    print(&table(&all.iter().map(row).collect::<Vec<_>>()));
    let mut tags: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in all.iter().flat_map(|operation| &operation.tags) {
        *tags.entry(tag).or_default() += 1;
    }
    let tags = tags.iter().map(|(tag, count)| format!("{tag} ({count})")).collect::<Vec<_>>().join(", ");
    note(&many(all.len(), "operation"));
    if !tags.is_empty() {
        note(&format!("tags: {tags}"));
    }
    note(&format!(
        "hint: Select at most {MOST}: `hikite module import-openapi {file} --tag TAG`, `--operations ID,ID` or \
         `--path /PREFIX`."
    ));
}

fn object(operation: &ApiOperation<'_>) -> Value {
    json!({
        "id": operation.id, "name": operation.name, "method": operation.method, "path": operation.path,
        "tags": operation.tags, "summary": operation.summary,
    })
}

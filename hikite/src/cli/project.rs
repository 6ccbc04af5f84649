//! `hikite project`: manages projects from a terminal.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use hikite_core::json::{Object, Raw};
use hikite_identity::{People, Project};
use serde_json::{Value, json};

use super::call::ResultFormat;
use super::store_session::{StoreSession, table};
use super::{GlobalArgs, note, print};

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// List all projects
    List(ProjectListArgs),
    /// Show one project
    Show(ProjectShowArgs),
    /// Create a project
    Create(ProjectCreateArgs),
    /// Change the given settings of a project
    Set(ProjectSetArgs),
    /// Remove a project and its tokens
    Delete(ProjectDeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ProjectListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectShowArgs {
    name: String,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectCreateArgs {
    /// The name of the project, also used in addresses
    name: String,
    #[command(flatten)]
    form: ProjectSettingsArgs,
    /// Print the project as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectSetArgs {
    name: String,
    #[command(flatten)]
    form: ProjectSettingsArgs,
    /// Reset a setting to its default
    #[arg(long, value_name = "WHAT", value_enum)]
    clear: Vec<ProjectSetting>,
    /// Print the project as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectDeleteArgs {
    name: String,
}

#[derive(Debug, Args)]
struct ProjectSettingsArgs {
    /// The description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// An allowed tool: `module`, `module:tool`, a glob of either, `/regex/`, `risk:read` [default: all]
    #[arg(long, value_name = "WHAT")]
    allow: Vec<String>,
    /// A denied tool; overrides `--allow`
    #[arg(long, value_name = "WHAT")]
    deny: Vec<String>,
    /// A member of the project [default: everybody with a token for it]
    #[arg(long, value_name = "SUBJECT")]
    member: Vec<String>,
    /// The surfaces of its clients [default: from the config]
    #[arg(long, value_name = "SURFACE")]
    surface: Vec<String>,
    /// The search mode [default: from the config]
    #[arg(long, value_enum)]
    optimization: Option<OptimizationArg>,
    /// The result format of `call` and `tool_execute` [default: unchanged]
    #[arg(long, value_enum)]
    format: Option<ResultFormat>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OptimizationArg {
    Off,
    Bm25,
    Hybrid,
    Cloud,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProjectSetting {
    Description,
    Allow,
    Deny,
    Member,
    Surface,
    Optimization,
    Format,
}

impl ProjectCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let session = StoreSession::open(common).await?;
        let outcome = self.execute(&session).await;
        session.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn execute(self, session: &StoreSession) -> Result<()> {
        let people = &session.people;
        match self {
            Self::List(list) => list.print(people),
            Self::Show(show) => show.print(people)?,
            Self::Create(create) => {
                let form = create.form.onto(Object::default());
                let work = people.projects().create(&create.name, &form);
                let project = session.recorded("project.create", &create.name, work).await?;
                tell(&project, create.json, &create.name, "is created");
            }
            Self::Set(set) => {
                let work = people.projects().replace(&set.name, |form| set.form.onto(set.cleared(form)));
                let project = session.recorded("project.change", &set.name, work).await?;
                tell(&project, set.json, &set.name, "is changed");
            }
            Self::Delete(delete) => {
                let work = people.projects().delete(&delete.name);
                session.recorded("project.delete", &delete.name, work).await?;
                note(&format!("The project `{}` and its tokens are removed.", delete.name));
            }
        }
        Ok(())
    }
}

impl ProjectListArgs {
    fn print(&self, people: &People) {
        if self.json {
            return print(&Raw::array(&people.projects().objects()).as_str());
        }
        let projects = people.projects().all();
        let rows: Vec<Vec<String>> = projects.iter().map(|project| row(project)).collect();
        if !rows.is_empty() {
            print(&table(&rows));
        }
        note(&format!("{} project{}", rows.len(), if rows.len() == 1 { "" } else { "s" }));
    }
}

impl ProjectShowArgs {
    fn print(&self, people: &People) -> Result<()> {
        let project = people.projects().object(&self.name)?.value();
        print(&if self.json { project.to_string() } else { format!("{project:#}") });
        Ok(())
    }
}

impl ProjectSetArgs {
    /// Returns the project without the settings to clear.
    fn cleared(&self, mut form: Object) -> Object {
        let mut permissions = form.get("permissions").and_then(Raw::object).unwrap_or_default();
        for member in &self.clear {
            match member {
                ProjectSetting::Description => drop(form.remove("description")),
                ProjectSetting::Allow => drop(permissions.remove("allow")),
                ProjectSetting::Deny => drop(permissions.remove("deny")),
                ProjectSetting::Member => drop(form.remove("members")),
                ProjectSetting::Surface => drop(form.remove("surface")),
                ProjectSetting::Optimization => drop(form.remove("optimization")),
                ProjectSetting::Format => drop(form.remove("format")),
            }
        }
        form.with("permissions", permissions)
    }
}

impl ProjectSettingsArgs {
    /// Returns the project with the settings of the flags applied.
    fn onto(&self, mut form: Object) -> Object {
        if let Some(description) = &self.description {
            form.set("description", description.as_str());
        }
        let mut permissions = form.get("permissions").and_then(Raw::object).unwrap_or_default();
        for (member, named) in [("allow", &self.allow), ("deny", &self.deny)] {
            if !named.is_empty() {
                permissions.set(member, Raw::of(named));
            }
        }
        form.set("permissions", permissions);
        for (member, named) in [("members", &self.member), ("surface", &self.surface)] {
            if !named.is_empty() {
                form.set(member, Raw::of(named));
            }
        }
        if let Some(optimization) = self.optimization {
            form.set("optimization", Raw::from(optimization.value()));
        }
        if let Some(format) = self.format {
            form.set("format", format.meaning().name());
        }
        form
    }
}

impl OptimizationArg {
    fn value(self) -> Value {
        match self {
            Self::Off => Value::Null,
            Self::Bm25 => json!("bm25"),
            Self::Hybrid => json!("hybrid"),
            Self::Cloud => json!("cloud"),
        }
    }
}

/// Returns name, search provider, members and description.
fn row(project: &Project) -> Vec<String> {
    let search = match project.optimization {
        None => "default",
        Some(optimization) => optimization.name().unwrap_or("off"),
    };
    let members = match project.members.len() {
        0 => "anybody".to_owned(),
        1 => "1 member".to_owned(),
        count => format!("{count} members"),
    };
    let origin = if project.managed_by_file { "(file) " } else { "" };
    vec![project.name.to_string(), search.to_owned(), members, format!("{origin}{}", project.description)]
}

fn tell(project: &Raw, json: bool, name: &str, what: &str) {
    if json {
        return print(&project.as_str());
    }
    note(&format!("The project `{name}` {what}."));
}

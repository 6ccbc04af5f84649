//! `hikite user`: the people who log in, from a terminal. A password that was made goes to stdout, this once.

use std::io::BufRead;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_gateway::Identity;

use super::people::{Desk, table};
use super::{Common, note, print};

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Make a user; without `--stdin` a password is made and printed this once
    Add(Add),
    /// List all users
    List(List),
    /// Take a user away, with logins and everything their clients were allowed
    Remove(Name),
    /// Give a user another password, which ends their logins
    Password(Password),
    /// Make the one-time link that makes the owner
    SetupLink,
    /// Say which tools there are for a user
    Mask(Mask),
    /// Bind a user to one project: whatever they come with opens that project and nothing else
    Project(Bind),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    name: String,
    /// `admin` or `member`
    #[arg(long, value_name = "ROLE", default_value = "member")]
    role: String,
    /// Read the password from the first line of stdin
    #[arg(long)]
    stdin: bool,
    /// The only project that they work in [default: all that they belong to]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Bind {
    name: String,
    /// The project
    #[arg(required_unless_present = "none")]
    project: Option<String>,
    /// Bind them to none
    #[arg(long, conflicts_with = "project")]
    none: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Password {
    name: String,
    /// Read the password from the first line of stdin
    #[arg(long)]
    stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Mask {
    name: String,
    /// What is allowed: modules, tools, patterns, risks; several with commas [default: everything]
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    allow: Vec<String>,
    /// What is denied all the same
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    deny: Vec<String>,
    /// Take the mask away
    #[arg(long, conflicts_with_all = ["allow", "deny"])]
    none: bool,
}

impl UserCommand {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let desk = Desk::open(common).await?;
        let outcome = match desk.identity().await {
            Ok(identity) => self.do_it(&desk, &identity).await,
            Err(error) => Err(error),
        };
        desk.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn do_it(self, desk: &Desk, identity: &Identity) -> Result<()> {
        match self {
            Self::Add(add) => add.run(desk, identity).await,
            Self::List(list) => {
                list.print(identity);
                Ok(())
            }
            Self::Remove(Name { name }) => {
                desk.recorded("user.delete", &name, identity.remove_user(&name)).await?;
                note(&format!("the user `{name}` is gone"));
                Ok(())
            }
            Self::Password(password) => password.run(desk, identity).await,
            Self::SetupLink => setup_link(desk, identity).await,
            Self::Mask(mask) => mask.run(desk, identity).await,
            Self::Project(bind) => bind.run(desk, identity).await,
        }
    }
}

impl Add {
    async fn run(self, desk: &Desk, identity: &Identity) -> Result<()> {
        let mut form = Object::default().with("name", self.name.as_str()).with("role", self.role.as_str());
        if self.stdin {
            form.set("password", first_line()?.as_str());
        }
        if let Some(project) = &self.project {
            form.set("project", project.as_str());
            desk.people.check_project_of(&form)?;
        }
        let (_, made) = desk.recorded("user.create", &self.name, identity.add_user(&form)).await?;
        if let Some(password) = made {
            print(password.expose());
            note(&format!("the password of `{}`; it is not shown again", self.name));
        } else {
            note(&format!("the user `{}` can log in", self.name));
        }
        Ok(())
    }
}

impl Bind {
    async fn run(self, desk: &Desk, identity: &Identity) -> Result<()> {
        let project = self.project.as_deref().map_or_else(Raw::null, Raw::from);
        let form = Object::default().with("project", project);
        desk.people.check_project_of(&form)?;
        let user = desk.recorded("user.change", &self.name, identity.change_user(&self.name, &form)).await?;
        print(&user.as_str());
        Ok(())
    }
}

impl List {
    fn print(&self, identity: &Identity) {
        if self.json {
            print(&Raw::array(&identity.user_objects()).as_str());
            return;
        }
        let mut rows = vec![["NAME", "ROLE", "SUBJECT", "PROJECT", "STATE"].map(str::to_owned).to_vec()];
        for user in identity.users() {
            let state = match (user.disabled, user.permissions.is_some()) {
                (true, _) => "locked out",
                (false, true) => "masked",
                (false, false) => "active",
            };
            rows.push(vec![
                user.name.to_string(),
                user.role.name().into(),
                user.subject.to_string(),
                user.project.as_deref().unwrap_or("-").to_owned(),
                state.into(),
            ]);
        }
        print(&table(&rows));
    }
}

impl Password {
    async fn run(self, desk: &Desk, identity: &Identity) -> Result<()> {
        let made = if self.stdin { None } else { Some(hikite_gateway::identity::secret("")?) };
        let password = match &made {
            Some(made) => made.expose().to_owned(),
            None => first_line()?,
        };
        let form = Object::default().with("password", password.as_str());
        desk.recorded("user.change", &self.name, identity.change_user(&self.name, &form)).await?;
        if made.is_some() {
            print(&password);
        }
        note(&format!("`{}` has another password; all their logins are over", self.name));
        Ok(())
    }
}

impl Mask {
    async fn run(self, desk: &Desk, identity: &Identity) -> Result<()> {
        let permissions = if self.none {
            Raw::null()
        } else {
            let mut permissions = Object::default();
            if !self.allow.is_empty() {
                permissions.set("allow", Raw::of(&self.allow));
            }
            if !self.deny.is_empty() {
                permissions.set("deny", Raw::of(&self.deny));
            }
            if permissions.is_empty() {
                bail!(
                    "nothing is said about what there is\nhint: name it with `--allow` and `--deny`, or say `--none`"
                );
            }
            permissions.raw()
        };
        let form = Object::default().with("permissions", permissions);
        let user = desk.recorded("user.change", &self.name, identity.change_user(&self.name, &form)).await?;
        print(&user.as_str());
        Ok(())
    }
}

async fn setup_link(desk: &Desk, identity: &Identity) -> Result<()> {
    let Some(token) = desk.recorded("user.setup-link", "owner", identity.make_setup_token(true)).await?
    else {
        bail!("there is an owner already\nhint: `hikite user password NAME` gives a new password");
    };
    print(&format!("{}/setup?token={}", desk.config.server.url(), token.expose()));
    note("open it within a day, in the browser of whoever is to be the owner");
    Ok(())
}

fn first_line() -> Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read stdin")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

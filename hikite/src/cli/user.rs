//! `hikite user`: manages users from a terminal. A generated password is printed once, to stdout.

use std::io::BufRead;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_identity::{Identity, Successor, UserAuthority};

use super::store_session::{StoreSession, table};
use super::{GlobalArgs, note, print};

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user; without `--stdin` a password is generated and printed once
    Add(UserAddArgs),
    /// List all users
    List(UserListArgs),
    /// Remove a user with tokens, logins, accounts and grants
    Remove(UserRemoveArgs),
    /// Rename a user
    Rename(UserRenameArgs),
    /// Lock a user: tokens, logins and clients are rejected until `enable`
    Disable(UserNameArgs),
    /// Unlock a user
    Enable(UserNameArgs),
    /// Set a new password, which ends the user's logins and grants
    Password(UserPasswordArgs),
    /// Make another user the owner; the current owner becomes an admin
    Handover(UserHandoverArgs),
    /// List removed users of other issuers, who cannot log in again
    Removed(UserListArgs),
    /// Allow a removed user to log in again
    Lift(UserLiftArgs),
    /// Create the one-time link for setting up the owner
    SetupLink,
    /// Set which tools a user can see
    Mask(UserMaskArgs),
    /// Restrict a user to one project
    Project(UserProjectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UserAddArgs {
    name: String,
    /// `admin` or `member`
    #[arg(long, value_name = "ROLE", default_value = "member")]
    role: String,
    /// Read the password from the first line of stdin
    #[arg(long)]
    stdin: bool,
    /// The only project of the user [default: all projects they are a member of]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UserProjectArgs {
    name: String,
    /// The project
    #[arg(required_unless_present = "none")]
    project: Option<String>,
    /// Remove the restriction
    #[arg(long, conflicts_with = "project")]
    none: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserNameArgs {
    /// Name or id
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct UserRemoveArgs {
    /// Name or id
    name: String,
    /// The user who gets their accounts and memberships [default: none; the accounts are deleted]
    #[arg(long, value_name = "NAME")]
    successor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UserRenameArgs {
    /// Name or id
    name: String,
    /// The new name
    new: String,
}

#[derive(Debug, Args)]
pub(crate) struct UserHandoverArgs {
    /// Name or id of the new owner
    name: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserLiftArgs {
    /// The id from `hikite user removed`, or the former name
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct UserPasswordArgs {
    /// Name or id
    name: String,
    /// Remove their passkeys as well
    #[arg(long)]
    remove_passkeys: bool,
    /// Read the password from the first line of stdin
    #[arg(long)]
    stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserMaskArgs {
    name: String,
    /// Allowed modules, tools, patterns or risks, separated by commas [default: everything]
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    allow: Vec<String>,
    /// Denied modules, tools, patterns or risks; overrides `--allow`
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    deny: Vec<String>,
    /// Remove the restriction
    #[arg(long, conflicts_with_all = ["allow", "deny"])]
    none: bool,
}

impl UserCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let session = StoreSession::open(common).await?;
        let outcome = match session.identity().await {
            Ok(identity) => self.execute(&session, &identity).await,
            Err(error) => Err(error),
        };
        session.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn execute(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        match self {
            Self::Add(add) => add.run(session, identity).await,
            Self::List(list) => {
                list.print(identity);
                Ok(())
            }
            Self::Remove(remove) => remove.run(session, identity).await,
            Self::Rename(UserRenameArgs { name, new }) => {
                let form = Object::default().with("name", new.as_str());
                change(session, identity, &name, &form).await?;
                note(&format!("`{name}` is now called `{new}`."));
                Ok(())
            }
            Self::Disable(UserNameArgs { name }) => {
                change(session, identity, &name, &Object::default().with("disabled", Raw::of(&true))).await?;
                note(&format!("`{name}` is locked."));
                Ok(())
            }
            Self::Enable(UserNameArgs { name }) => {
                change(session, identity, &name, &Object::default().with("disabled", Raw::of(&false))).await?;
                note(&format!("`{name}` is unlocked."));
                Ok(())
            }
            Self::Handover(handover) => handover.run(session, identity).await,
            Self::Removed(list) => removed(&list, identity).await,
            Self::Lift(UserLiftArgs { name }) => {
                session.recorded("user.lift", &name, identity.users().lift_removal(&name)).await?;
                note(&format!("`{name}` can log in again as a new user."));
                Ok(())
            }
            Self::Password(password) => password.run(session, identity).await,
            Self::SetupLink => setup_link(session, identity).await,
            Self::Mask(mask) => mask.run(session, identity).await,
            Self::Project(bind) => bind.run(session, identity).await,
        }
    }
}

impl UserAddArgs {
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        let mut form = Object::default().with("name", self.name.as_str()).with("role", self.role.as_str());
        if self.stdin {
            form.set("password", first_line()?.as_str());
        }
        if let Some(project) = &self.project {
            form.set("project", project.as_str());
            session.people.projects().check_project_of(&form)?;
        }
        let (_, made) = session.recorded("user.create", &self.name, identity.users().add(&form)).await?;
        if let Some(password) = made {
            print(password.expose());
            note(&format!("The password of `{}`. It is not shown again.", self.name));
        } else {
            note(&format!("The user `{}` can log in.", self.name));
        }
        Ok(())
    }
}

impl UserProjectArgs {
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        let project = self.project.as_deref().map_or_else(Raw::null, Raw::from);
        let form = Object::default().with("project", project);
        session.people.projects().check_project_of(&form)?;
        let user = change(session, identity, &self.name, &form).await?;
        print(&user.as_str());
        Ok(())
    }
}

impl UserListArgs {
    fn print(&self, identity: &Identity) {
        if self.json {
            print(&Raw::array(&identity.users().objects()).as_str());
            return;
        }
        let mut rows = vec![["NAME", "ROLE", "ID", "PROJECT", "STATE"].map(str::to_owned).to_vec()];
        for user in identity.users().all() {
            let state = match (user.disabled, user.permissions.is_some()) {
                (true, _) => "locked",
                (false, true) => "masked",
                (false, false) => "active",
            };
            rows.push(vec![
                user.name.to_string(),
                user.role.name().into(),
                user.id.to_string(),
                user.project.as_deref().unwrap_or("-").to_owned(),
                state.into(),
            ]);
        }
        print(&table(&rows));
    }
}

impl UserPasswordArgs {
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        let made = if self.stdin { None } else { Some(hikite_identity::secret("")?) };
        let password = match &made {
            Some(made) => made.expose().to_owned(),
            None => first_line()?,
        };
        let form = Object::default()
            .with("password", password.as_str())
            .with("removePasskeys", Raw::of(&self.remove_passkeys));
        change(session, identity, &self.name, &form).await?;
        if made.is_some() {
            print(&password);
        }
        let keys = if self.remove_passkeys { " Their passkeys are removed." } else { "" };
        note(&format!("`{}` has a new password. Their logins and their clients' tokens have ended.{keys}", self.name));
        Ok(())
    }
}

impl UserMaskArgs {
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
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
                    "No permissions were given.\nhint: Set them with `--allow` and `--deny`, or remove them with \
                     `--none`."
                );
            }
            permissions.raw()
        };
        let form = Object::default().with("permissions", permissions);
        print(&change(session, identity, &self.name, &form).await?.as_str());
        Ok(())
    }
}

/// Changes a user, with the owner as actor.
async fn change(session: &StoreSession, identity: &Identity, name: &str, form: &Object) -> Result<Raw> {
    let what = StoreSession::described(identity, name);
    let work = identity.users().change(name, form, UserAuthority::Owner, None);
    Ok(session.recorded("user.change", &what, work).await?)
}

impl UserRemoveArgs {
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        let (name, what) = (&self.name, StoreSession::described(identity, &self.name));
        let successor = self.successor.as_deref().map(Successor);
        let work = identity.users().remove(name, successor, UserAuthority::Owner);
        session.recorded("user.delete", &what, work).await?;
        match &self.successor {
            Some(successor) => {
                note(&format!("The user `{name}` is removed. Their accounts now belong to `{successor}`."));
            }
            None => note(&format!("The user `{name}` is removed with their accounts and tokens.")),
        }
        Ok(())
    }
}

impl UserHandoverArgs {
    /// Makes another user the owner. On the machine itself there is no login to require: whoever can read the store
    /// acts as the owner, and confirms by typing the name.
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        let user = identity.users().get(&self.name)?;
        if !self.yes {
            note(&format!(
                "`{}` becomes the owner, and the current owner becomes an admin. Type the name to continue:",
                user.name
            ));
            if first_line()?.trim() != &*user.name {
                bail!("Nothing was changed.\nhint: Type the name of the user, or use `--yes`.");
            }
        }
        let Some(owner) = identity.users().owner() else {
            bail!("There is no owner yet.\nhint: Create the link for the owner with `hikite user setup-link`.");
        };
        let what = StoreSession::described(identity, &self.name);
        session.recorded("user.handover", &what, identity.users().transfer_ownership(&owner, &self.name)).await?;
        note(&format!("`{}` is now the owner. The local token acts for them.", user.name));
        Ok(())
    }
}

async fn removed(list: &UserListArgs, identity: &Identity) -> Result<()> {
    let removed = identity.users().removal_objects().await?;
    if list.json {
        print(&Raw::array(&removed).as_str());
        return Ok(());
    }
    let mut rows = vec![["ID", "NAME", "REMOVED", "ISSUER"].map(str::to_owned).to_vec()];
    for object in removed.iter().filter_map(Raw::object) {
        let text = |member: &str| object.text(member).unwrap_or_default();
        rows.push(vec![text("id"), text("name"), text("removedAt"), text("issuer")]);
    }
    print(&table(&rows));
    Ok(())
}

async fn setup_link(session: &StoreSession, identity: &Identity) -> Result<()> {
    let Some(token) = session.recorded("user.setup-link", "owner", identity.users().make_setup_token(true)).await?
    else {
        bail!("There is already an owner.\nhint: Set a new password with `hikite user password NAME`.");
    };
    print(&format!("{}/setup?token={}", session.config.server.url(), token.expose()));
    note("Open it within a day in the browser of the future owner.");
    Ok(())
}

fn first_line() -> Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read stdin")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

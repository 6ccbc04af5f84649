//! `hikite token`: manages personal tokens. The secret of a new token is printed once, to stdout.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use hikite_config::{AuthSection, Config};
use hikite_core::caller::OWNER;
use hikite_core::json::{Object, Raw};
use hikite_identity::{People, PersonalToken, UserAuthority};

use super::store_session::{StoreSession, table};
use super::{GlobalArgs, note, print};
use crate::report::Snippets;
use crate::token;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret, which is shown only once
    Create(TokenCreateArgs),
    /// List all tokens, without their secrets
    List(TokenListArgs),
    /// Revoke a token
    Revoke(TokenRevokeArgs),
    /// Print the local token, which acts as the owner
    Show(TokenShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreateArgs {
    /// A name to recognize it by
    #[arg(long, value_name = "NAME", default_value = "unnamed")]
    name: String,
    /// The only project it gives access to [default: no restriction]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// The scopes: `read`, `call`, `admin`, separated by commas [default: read,call]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<String>,
    /// The user it acts for, with the user's accounts and permissions [default: the owner on a terminal, otherwise
    /// none: the token has its own identity]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Deprecated: use `--user`
    #[arg(long, value_name = "NAME", conflicts_with = "user", hide = true)]
    subject: Option<String>,
    /// The lifetime, such as `30d`, `12h` or `90m` [default: unlimited]
    #[arg(long, value_name = "SPAN", value_parser = seconds)]
    expires: Option<u32>,
    /// Print the token with its secret as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenShowArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// The id from `hikite token list`
    id: String,
}

impl TokenCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        if let Self::Show(show) = &self {
            return show.run(&common.load()?).map(|()| ExitCode::SUCCESS);
        }
        let session = StoreSession::open(common).await?;
        let outcome = match self {
            Self::Create(create) => create.run(&session).await,
            Self::List(list) => {
                list.print(&session.people);
                Ok(())
            }
            Self::Revoke(revoke) => revoke.run(&session).await,
            // Handled above, because it needs no store.
            Self::Show(_) => Ok(()),
        };
        session.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

impl TokenShowArgs {
    /// Prints the local token; only the owner of its file can read it.
    fn run(&self, config: &Config) -> Result<()> {
        match &config.auth {
            AuthSection::None => bail!("No token is needed.\nhint: `auth.mode` is `none`."),
            AuthSection::Token(Some(_)) => {
                bail!("The token is set in the config.\nhint: See `auth.token` or `auth.tokenFile`.")
            }
            AuthSection::Token(None) => {}
        }
        let path = token::path(&config.data);
        if !path.exists() {
            bail!("`{}` does not exist yet.\nhint: `hikite serve` creates it at its first start.", path.display());
        }
        let secret = token::local_token(&config.data)?;
        if self.json {
            let shown = Object::default().with("token", secret.expose());
            print(&shown.with("file", path.display().to_string()).raw().as_str());
        } else {
            print(secret.expose());
        }
        Ok(())
    }
}

impl TokenCreateArgs {
    async fn run(self, session: &StoreSession) -> Result<()> {
        if self.subject.is_some() {
            note("warning: `--subject` is deprecated; use `--user` with the name of a user");
        }
        let form = self.form();
        // The user of the terminal acts as the owner.
        let work = session.people.tokens().create(&form, UserAuthority::Owner);
        let (token, secret) = session.recorded("token.create", &self.name, work).await?;
        let token = token.object().unwrap_or_default();
        if self.json {
            print(&token.with("secret", secret.expose()).raw().as_str());
            return Ok(());
        }
        print(secret.expose());
        let id = token.text("id").unwrap_or_default();
        note(&format!("The token `{id}`. Its secret is not shown again."));
        match token.text("user") {
            Some(user) => note(&format!("It acts for `{user}` and uses that user's accounts.")),
            None if self.acts_for_owner() => note("It acts for the owner and uses the owner's accounts."),
            None => {}
        }
        note(&Snippets { url: session.config.server.url(), token: secret.expose().to_owned() }.text());
        Ok(())
    }

    fn form(&self) -> Object {
        let mut form = Object::default().with("name", self.name.as_str());
        for (member, value) in [("project", &self.project), ("user", &self.user), ("subject", &self.subject)] {
            if let Some(value) = value {
                form.set(member, value.as_str());
            }
        }
        if self.acts_for_owner() {
            form.set("user", OWNER);
        }
        if !self.scopes.is_empty() {
            form.set("scopes", Raw::of(&self.scopes));
        }
        if let Some(seconds) = self.expires {
            form.set("expiresIn", Raw::of(&seconds));
        }
        form
    }

    /// Returns `true` for a person at a terminal who names no user. Scripts keep the earlier default: the token acts
    /// for nobody.
    fn acts_for_owner(&self) -> bool {
        self.user.is_none() && self.subject.is_none() && std::io::stdin().is_terminal()
    }
}

impl TokenListArgs {
    fn print(&self, people: &People) {
        if self.json {
            return print(&Raw::array(&people.tokens().objects()).as_str());
        }
        let (tokens, shown) = (people.tokens().all(), people.tokens().objects());
        let rows: Vec<Vec<String>> = tokens.iter().zip(&shown).map(|(token, shown)| row(token, shown)).collect();
        if !rows.is_empty() {
            print(&table(&rows));
        }
        note(&format!("{} token{}", rows.len(), if rows.len() == 1 { "" } else { "s" }));
    }
}

impl TokenRevokeArgs {
    async fn run(self, session: &StoreSession) -> Result<()> {
        session.recorded("token.revoke", &self.id, session.people.tokens().revoke(&self.id)).await?;
        note(&format!("The token `{}` is revoked.", self.id));
        Ok(())
    }
}

/// Returns id, project, scopes, expiry, user and name.
fn row(token: &PersonalToken, shown: &Raw) -> Vec<String> {
    let members = shown.object().unwrap_or_default();
    let is_good = members.get("active").is_some_and(|active| active.as_str() == "true");
    let until = members.text("expiresAt").unwrap_or_else(|| "never".into());
    vec![
        token.id.to_string(),
        token.project.as_deref().unwrap_or("-").to_owned(),
        token.scopes.names().collect::<Vec<_>>().join(","),
        until,
        members.text("user").unwrap_or_else(|| "-".into()),
        format!("{}{}", if is_good { "" } else { "(not active) " }, token.name),
    ]
}

/// Parses a duration like `30d` into seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let wrong = || "write it as `30d`, `12h`, `90m` or `45s`".to_owned();
    let unit = text.chars().last().filter(char::is_ascii_alphabetic).ok_or_else(wrong)?;
    let each = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    count.checked_mul(each).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, expected) in [("30d", 2_592_000), ("12h", 43_200), ("90m", 5400), ("45s", 45), ("1w", 604_800)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for wrong in ["", "30", "d", "0d", "-1d", "1.5h", "99999999w", "1y", "1日"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}

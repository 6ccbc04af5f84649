//! Removing a user: in one transaction all their data is deleted, or their accounts and memberships are transferred to
//! a successor.

use std::collections::BTreeSet;

use hikite_core::json::{Object, Raw};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::{KIND, UserRow, UserTable};
use crate::account::AccountRow;
use crate::change::kind;
use crate::document::{DocumentRow, Documents};
use crate::error::StoreError;
use crate::record::Record;
use crate::schema::stored;

/// An account, and what must be unique among the accounts of its owner.
struct AccountKey {
    id: String,
    provider: String,
    name: String,
}

impl UserTable<'_> {
    /// Removes a user in the version that the row names, with tokens, logins, consents, grants and passkeys. Accounts
    /// are deleted with their sealed secrets, or transferred to the successor, who also replaces them in projects.
    /// `remember` is inserted as well. Returns `false` if the user has another version or is gone.
    pub async fn remove(
        &self,
        user: &UserRow,
        successor: Option<&UserRow>,
        remember: Option<&DocumentRow>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let query = sqlx::query("DELETE FROM users WHERE id = $1 AND version = $2");
        let query = query.bind(&*user.id).bind(stored(user.version));
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?.rows_affected() > 0;
        let (mut tokens, mut accounts, mut projects) = (Vec::new(), Vec::new(), Vec::new());
        if done {
            let query = sqlx::query("DELETE FROM drawer WHERE kind = $1 AND id = $2").bind(KIND).bind(&*user.name);
            query.execute(&mut *transaction).await.map_err(self.0.failed())?;
            tokens = self.remove_tokens_of(&mut transaction, &user.subject).await?;
            accounts = self.accounts_of(&mut transaction, &user.subject).await?;
            match successor {
                Some(successor) => self.transfer_accounts(&mut transaction, &accounts, successor).await?,
                None => self.purge_accounts(&mut transaction, &accounts).await?,
            }
            // Logins, consents, grants and passkeys are deleted with their user. The last table may have rows of the
            // version before that no other table has.
            for text in ["DELETE FROM documents WHERE owner = $1", "DELETE FROM drawer WHERE owner = $1"] {
                sqlx::query(text).bind(&*user.subject).execute(&mut *transaction).await.map_err(self.0.failed())?;
            }
            projects = self.leave_projects(&mut transaction, user, successor).await?;
            if let Some(entry) = remember {
                Documents(self.0).insert(&mut transaction, entry).await?;
            }
        }
        let mut touched = vec![(kind::USER, user.id.as_str())];
        touched.extend(tokens.iter().map(|id| (kind::TOKEN, id.as_str())));
        touched.extend(accounts.iter().map(|account| (AccountRow::KIND, account.id.as_str())));
        touched.extend(projects.iter().map(|name| (kind::PROJECT, name.as_str())));
        touched.extend(remember.map(|entry| (entry.kind, entry.id.as_str())));
        self.0.commit_change(transaction, done, &touched).await
    }

    async fn remove_tokens_of(&self, connection: &mut AnyConnection, subject: &str) -> Result<Vec<String>, StoreError> {
        let mut removed = Vec::new();
        let query = sqlx::query("SELECT id, form FROM token");
        for row in query.fetch_all(&mut *connection).await.map_err(self.0.failed())? {
            let (id, form) = texts(&row).map_err(self.0.failed())?;
            if form.and_then(|form| form.text("subject")).as_deref() == Some(subject) {
                let query = sqlx::query("DELETE FROM token WHERE id = $1").bind(&*id);
                query.execute(&mut *connection).await.map_err(self.0.failed())?;
                removed.push(id);
            }
        }
        Ok(removed)
    }

    async fn purge_accounts(&self, connection: &mut AnyConnection, accounts: &[AccountKey]) -> Result<(), StoreError> {
        for account in accounts {
            for text in [
                "DELETE FROM vault_secret WHERE account = $1",
                "DELETE FROM vault_key WHERE account = $1",
                "DELETE FROM accounts WHERE id = $1",
            ] {
                sqlx::query(text).bind(&*account.id).execute(&mut *connection).await.map_err(self.0.failed())?;
            }
        }
        Ok(())
    }

    async fn accounts_of(&self, connection: &mut AnyConnection, subject: &str) -> Result<Vec<AccountKey>, StoreError> {
        let query = sqlx::query("SELECT id, provider, name FROM accounts WHERE subject = $1 ORDER BY created_at, id");
        let rows = query.bind(subject).fetch_all(connection).await.map_err(self.0.failed())?;
        let read =
            |row: &AnyRow| Ok(AccountKey { id: row.try_get(0)?, provider: row.try_get(1)?, name: row.try_get(2)? });
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    /// Transfers accounts to the successor, renamed on conflicts, and none of them as default.
    async fn transfer_accounts(
        &self,
        connection: &mut AnyConnection,
        accounts: &[AccountKey],
        successor: &UserRow,
    ) -> Result<(), StoreError> {
        let theirs = self.accounts_of(connection, &successor.subject).await?;
        let mut taken: BTreeSet<(String, String)> =
            theirs.into_iter().map(|account| (account.provider, account.name)).collect();
        for AccountKey { id, provider, name } in accounts {
            let mut free = name.clone();
            let mut number = 2_u32;
            while !taken.insert((provider.clone(), free.clone())) {
                free = format!("{name}-{number}");
                number += 1;
            }
            let query = sqlx::query(
                "UPDATE accounts SET subject = $1, name = $2, is_default = 0, version = version + 1 WHERE id = $3",
            );
            let query = query.bind(&*successor.subject).bind(free).bind(&**id);
            query.execute(&mut *connection).await.map_err(self.0.failed())?;
        }
        Ok(())
    }

    /// Removes the user from projects. A project without members would be open to everybody, so the id, which is never
    /// reused, stays in it.
    async fn leave_projects(
        &self,
        connection: &mut AnyConnection,
        user: &UserRow,
        successor: Option<&UserRow>,
    ) -> Result<Vec<String>, StoreError> {
        let is_theirs = |member: &str| member == user.name || member == user.id || member == user.subject;
        self.change_members(connection, |members| {
            let mut next: Vec<String> = members.iter().filter(|member| !is_theirs(member)).cloned().collect();
            if next.len() == members.len() {
                return None;
            }
            if let Some(successor) = successor.filter(|successor| !next.contains(&successor.name)) {
                next.push(successor.name.clone());
            }
            if next.is_empty() {
                next.push(user.id.clone());
            }
            Some(next)
        })
        .await
    }

    pub(super) async fn rename_member(
        &self,
        connection: &mut AnyConnection,
        before: &str,
        after: &str,
    ) -> Result<Vec<String>, StoreError> {
        let rename = |member: &String| if member == before { after.to_owned() } else { member.clone() };
        self.change_members(connection, |members| {
            members.iter().any(|member| member == before).then(|| members.iter().map(rename).collect())
        })
        .await
    }

    /// Changes the members of all projects for which `change` returns new ones; returns their names.
    async fn change_members(
        &self,
        connection: &mut AnyConnection,
        change: impl Fn(&[String]) -> Option<Vec<String>>,
    ) -> Result<Vec<String>, StoreError> {
        let mut changed = Vec::new();
        let query = sqlx::query("SELECT name, form FROM project");
        for row in query.fetch_all(&mut *connection).await.map_err(self.0.failed())? {
            let (name, form) = texts(&row).map_err(self.0.failed())?;
            if form.is_none_or(|form| change(&members_of(&form)).is_none()) {
                continue;
            }
            // Read again under a lock, because a concurrent change must not be undone.
            let text = "UPDATE project SET form = form WHERE name = $1 RETURNING name, form";
            let query = sqlx::query(text).bind(&*name);
            let row = query.fetch_optional(&mut *connection).await.map_err(self.0.failed())?;
            let held = row.as_ref().map(texts).transpose().map_err(self.0.failed())?;
            let Some(mut form) = held.and_then(|(_, form)| form) else { continue };
            let Some(next) = change(&members_of(&form)) else { continue };
            form.set("members", Raw::of(&next));
            let form = form.raw();
            let query = sqlx::query("UPDATE project SET form = $1 WHERE name = $2");
            let query = query.bind(self.0.text_of(&form)?).bind(&*name);
            query.execute(&mut *connection).await.map_err(self.0.failed())?;
            changed.push(name);
        }
        Ok(changed)
    }
}

fn members_of(project: &Object) -> Vec<String> {
    project.get("members").and_then(|members| members.decode().ok()).unwrap_or_default()
}

/// Reads a key and its JSON, if readable.
fn texts(row: &AnyRow) -> Result<(String, Option<Object>), sqlx::Error> {
    let form: String = row.try_get(1)?;
    Ok((row.try_get(0)?, Raw::parse(form).ok().and_then(|form| form.object())))
}

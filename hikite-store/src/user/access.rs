//! Revoking a user's access: logins, grants, passkeys and documents of some kinds.

use super::UserTable;
use crate::error::StoreError;
use crate::grant::GrantRow;
use crate::login::LoginRow;
use crate::passkey::PasskeyRow;
use crate::record::Record;

/// A kind of access that a user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Login,
    Grant,
    Passkey,
    /// Documents of this kind.
    Document(&'static str),
}

impl UserTable<'_> {
    /// Removes the access of these kinds in their order, except the login with id `but`. Returns the number of rows.
    pub async fn remove_access(
        &self,
        kinds: &[AccessKind],
        subject: &str,
        but: Option<&str>,
    ) -> Result<u64, StoreError> {
        let Ok(subject) = self.0.checked_text(subject) else { return Ok(0) };
        let mut transaction = self.0.begin().await?;
        let (mut removed, mut touched) = (0, Vec::new());
        for kind in kinds {
            let (text, kind, id) = match kind {
                AccessKind::Login => {
                    ("DELETE FROM logins WHERE subject = $1 AND id <> $2", LoginRow::KIND, but.unwrap_or_default())
                }
                AccessKind::Grant => ("DELETE FROM grants WHERE subject = $1 AND $2 = $2", GrantRow::KIND, ""),
                AccessKind::Passkey => ("DELETE FROM passkeys WHERE subject = $1 AND $2 = $2", PasskeyRow::KIND, ""),
                AccessKind::Document(kind) => ("DELETE FROM documents WHERE owner = $1 AND kind = $2", *kind, *kind),
            };
            let query = sqlx::query(text).bind(subject).bind(id);
            removed += query.execute(&mut *transaction).await.map_err(self.0.failed())?.rows_affected();
            touched.push((kind, ""));
        }
        self.0.commit_change(transaction, removed > 0, &touched).await?;
        Ok(removed)
    }
}

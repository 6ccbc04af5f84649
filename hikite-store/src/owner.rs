//! The owner of a new row: a user who is checked and locked in the same transaction, so that nobody is locked out,
//! removed or given another password in between.

use sqlx::{AnyConnection, Row};

use crate::database::Database;
use crate::error::StoreError;
use crate::schema::shown;

/// The required state of a new row's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerCheck {
    /// A user who is not locked out.
    User,
    /// A user who is not locked out, in this version.
    UserAtVersion(u64),
    /// A user who is not locked out, or a subject that is no user.
    Anybody,
}

impl Database {
    /// Returns `true` if a subject matches `holder`. A user is locked until the end of the transaction: the update
    /// changes nothing, but takes the row lock that PostgreSQL needs.
    pub(crate) async fn lock_owner(
        &self,
        connection: &mut AnyConnection,
        subject: &str,
        holder: OwnerCheck,
    ) -> Result<bool, StoreError> {
        let text = "UPDATE users SET version = version WHERE subject = $1 RETURNING version, disabled";
        let query = sqlx::query(text).bind(self.checked_text(subject)?);
        let Some(row) = query.fetch_optional(connection).await.map_err(self.failed())? else {
            return Ok(holder == OwnerCheck::Anybody);
        };
        let version = shown(row.try_get(0).map_err(self.failed())?);
        let disabled = row.try_get::<i64, _>(1).map_err(self.failed())? != 0;
        let is_same = match holder {
            OwnerCheck::UserAtVersion(before) => before == version,
            OwnerCheck::User | OwnerCheck::Anybody => true,
        };
        Ok(is_same && !disabled)
    }
}

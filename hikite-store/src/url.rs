//! The location of a store: a file, memory, or a PostgreSQL database. Never displays the password.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hikite_core::secret::{MASK, Secret};
use sqlx::postgres::PgConnectOptions;

#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(pub(crate) StoreLocation);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    File(PathBuf),
    Memory,
    Postgres(Secret),
}

/// The reason why a text is not a store URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\nhint: {hint}")]
pub struct StoreUrlError {
    pub message: String,
    pub hint: &'static str,
}

const FORMS: &str = "Write `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`.";

impl StoreUrl {
    /// Parses `sqlite:PATH`, `sqlite::memory:`, `postgres://…` or `postgresql://…`.
    pub fn parse(text: &str) -> Result<Self, StoreUrlError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return postgres(text);
        }
        let Some(path) = text.strip_prefix("sqlite:") else {
            // The text is not repeated, because it may contain a password.
            return Err(StoreUrlError {
                message: "The address of a store starts with `sqlite:` or `postgres://`.".into(),
                hint: FORMS,
            });
        };
        let path = path.strip_prefix("//").unwrap_or(path);
        match path {
            ":memory:" => Ok(Self::memory()),
            "" => Err(StoreUrlError { message: "`sqlite:` has no file name.".into(), hint: FORMS }),
            _ if path.contains(['?', '#', '\0']) => Err(StoreUrlError {
                message: format!("`{}` has parameters after the path.", text.escape_debug()),
                hint: "Write only the path; hikite chooses the parameters.",
            }),
            _ => Ok(Self::file(path)),
        }
    }

    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(StoreLocation::File(path.into()))
    }

    /// Returns a store in memory, which is lost with the process.
    pub fn memory() -> Self {
        Self(StoreLocation::Memory)
    }

    /// Returns `true` if the store is lost when closed.
    pub fn is_memory(&self) -> bool {
        self.0 == StoreLocation::Memory
    }

    /// Returns the path of a file store.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            StoreLocation::File(path) => Some(path),
            StoreLocation::Memory | StoreLocation::Postgres(_) => None,
        }
    }
}

fn postgres(text: &str) -> Result<StoreUrl, StoreUrlError> {
    let shown = shown(text);
    PgConnectOptions::from_str(text).map_err(|_| StoreUrlError {
        message: format!("`{shown}` is not the address of a PostgreSQL database."),
        hint: "Write `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Escape special characters in the password, for \
         example `@` as `%40` and `/` as `%2F`.",
    })?;
    Ok(StoreUrl(StoreLocation::Postgres(Secret::shown_as(text, shown))))
}

/// Removes the password and the parameters, which may contain one as well.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return MASK.to_owned() };
    let Some((user, place)) = rest.rsplit_once('@') else { return url.to_owned() };
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:{MASK}@{place}"),
        None => url.to_owned(),
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            StoreLocation::File(path) => write!(f, "sqlite:{}", path.display()),
            StoreLocation::Memory => f.write_str("sqlite::memory:"),
            StoreLocation::Postgres(url) => write!(f, "{url}"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Returns the path of a file that accompanies a database file.
pub(crate) fn sidecar(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = StoreUrl::parse(text);
        let shown = found.as_ref().map(ToString::to_string).map_err(ToString::to_string);
        match expected {
            Ok(expected) => assert_eq!(shown.as_deref(), Ok(expected)),
            Err(expected) => assert!(shown.as_ref().is_err_and(|said| said.contains(expected)), "{shown:?}"),
        }
    }

    #[test]
    fn addresses_are_read_and_shown_without_their_password() {
        check("sqlite:/var/lib/hikite.db", Ok("sqlite:/var/lib/hikite.db"));
        check("sqlite:///var/lib/hikite.db", Ok("sqlite:/var/lib/hikite.db"));
        check("sqlite:data/日本 1.db", Ok("sqlite:data/日本 1.db"));
        check("sqlite::memory:", Ok("sqlite::memory:"));
        check("sqlite:", Err("has no file name"));
        check("sqlite:a.db?mode=ro", Err("parameters after the path"));
        check("postgres://u@h/d", Ok("postgres://u@h/d"));
        check("postgresql://u:hunter2@h:5433/d?sslmode=require", Ok("postgresql://u:***@h:5433/d"));
        check("postgres://u:hun@ter2@h/d", Ok("postgres://u:***@h/d"));
        check("postgres:///d?host=/run/postgresql&password=hunter2", Ok("postgres:///d"));
        check("postgres://u:p@h:99999/d", Err("is not the address of a PostgreSQL database"));
        check("mysql://u:hunter2@h/d", Err("starts with `sqlite:` or `postgres://`"));
    }

    #[test]
    fn a_password_shows_neither_in_debug_nor_in_what_is_wrong() {
        let url = StoreUrl::parse("postgres://u:hunter2@h/d?password=hunter2").expect("an address");
        assert!(!format!("{url} {url:?}").contains("hunter2"));
        for wrong in ["postgres://u:hunter2@h:99999/d", "mysql://u:hunter2@h/d", "hunter2"] {
            let error = StoreUrl::parse(wrong).expect_err("no address");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}

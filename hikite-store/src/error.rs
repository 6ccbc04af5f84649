//! Store errors and what to do about them. The text is for operators: it names the store and the database's message.
//! Clients see neither (`From<StoreError> for Error`).

use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};

use crate::url::StoreUrl;

#[derive(Clone, Debug, thiserror::Error)]
#[error("the store {place} {}: {reason}\nhint: {}", fault.text().words, fault.text().hint)]
pub struct StoreError {
    pub fault: StoreFault,
    place: String,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// A lock or all connections were taken for longer than the timeout.
    Busy,
    Unreachable,
    Refused,
    NotWritable,
    Full,
    Damaged,
    Foreign,
    Newer,
    NotEmpty,
    InUse,
    Exists,
    /// NUL characters, which neither JSON nor PostgreSQL can store.
    Nul,
    Failed,
}

struct FaultText {
    fault: StoreFault,
    words: &'static str,
    hint: &'static str,
}

#[rustfmt::skip]
const TABLE: &[FaultText] = &[
    FaultText { fault: StoreFault::Busy,        words: "is busy",
           hint: "Try again. If it stays busy, look for another program that keeps it locked." },
    FaultText { fault: StoreFault::Unreachable, words: "cannot be reached",
           hint: "Check that the database is running there, and check `store.url`." },
    FaultText { fault: StoreFault::Refused,     words: "denies access",
           hint: "Check user, password and database in `store.url`, and the permissions of that user." },
    FaultText { fault: StoreFault::NotWritable, words: "cannot be written",
           hint: "Give hikite's user write access to the file and its folder, or choose another location with \
            `store.url` or `--data`." },
    FaultText { fault: StoreFault::Full,        words: "is full or cannot be read from its disk",
           hint: "Free disk space and check the disk." },
    FaultText { fault: StoreFault::Damaged,     words: "is damaged",
           hint: "Stop hikite and restore a backup made with `hikite store backup`: `hikite store restore`. Without a \
            backup, move the file away together with its `-wal` and `-shm` files; hikite then starts with an empty \
            store." },
    FaultText { fault: StoreFault::Foreign,     words: "belongs to another program",
           hint: "Give hikite its own file or database in `store.url`." },
    FaultText { fault: StoreFault::Newer,       words: "was written by a newer hikite",
           hint: "Start that version or a later one, or restore a backup from before the upgrade." },
    FaultText { fault: StoreFault::NotEmpty,    words: "is not empty",
           hint: "Copy into a store that has not been used yet." },
    FaultText { fault: StoreFault::InUse,       words: "is in use",
           hint: "Stop every hikite and every other program that uses it, then try again." },
    FaultText { fault: StoreFault::Exists,      words: "cannot be copied there",
           hint: "Choose a file that does not exist yet." },
    FaultText { fault: StoreFault::Nul,         words: "cannot store this name",
           hint: "Remove the NUL character." },
    FaultText { fault: StoreFault::Failed,      words: "failed",
           hint: "Run `hikite store check` to find the problem." },
];

impl StoreFault {
    /// Describes the fault, without location or database message.
    pub fn words(self) -> &'static str {
        self.text().words
    }

    fn text(self) -> &'static FaultText {
        // The table lists every fault (see the test below).
        TABLE.iter().find(|text| text.fault == self).unwrap_or(&TABLE[0])
    }
}

impl StoreError {
    pub(crate) fn new(fault: StoreFault, place: &StoreUrl, reason: impl Into<String>) -> Self {
        Self { fault, place: place.to_string(), reason: reason.into() }
    }

    /// Returns `true` if the error may resolve itself: the database is unreachable, starting, or out of connections.
    pub fn is_transient(&self) -> bool {
        matches!(self.fault, StoreFault::Unreachable | StoreFault::Busy)
    }

    pub(crate) fn of(place: &StoreUrl, error: &sqlx::Error) -> Self {
        let fault = match error {
            sqlx::Error::PoolTimedOut => StoreFault::Busy,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) => StoreFault::Unreachable,
            sqlx::Error::Database(answer) => fault_of(answer.code().as_deref().unwrap_or_default()),
            _ => StoreFault::Failed,
        };
        let reason = match error {
            sqlx::Error::PoolTimedOut => "no connection became available in time".to_owned(),
            sqlx::Error::Database(answer) => answer.message().to_owned(),
            other => other.to_string(),
        };
        Self::new(fault, place, reason)
    }
}

/// Maps an error code. SQLite codes are numbers with the kind in the low byte; PostgreSQL codes have five characters.
fn fault_of(code: &str) -> StoreFault {
    if code.len() == 5 {
        return match code {
            "55P03" | "57014" | "40P01" | "40001" | "53300" | "57P03" => StoreFault::Busy,
            "42501" | "3D000" | "25006" => StoreFault::Refused,
            "53100" | "53200" | "58030" => StoreFault::Full,
            "XX001" | "XX002" => StoreFault::Damaged,
            _ if code.starts_with("28") => StoreFault::Refused,
            _ if code.starts_with("08") || code.starts_with("57P") => StoreFault::Unreachable,
            _ => StoreFault::Failed,
        };
    }
    match code.parse::<u32>().unwrap_or_default() & 0xff {
        5 | 6 => StoreFault::Busy,
        3 | 8 | 14 | 23 => StoreFault::NotWritable,
        10 | 13 => StoreFault::Full,
        11 | 26 => StoreFault::Damaged,
        _ => StoreFault::Failed,
    }
}

/// Delay before retrying an unreachable store.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Converts a store error into a response: the error is logged here, and the response reveals none of it.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error.fault {
            StoreFault::Nul => Self::new(ErrorKind::Validation, "A name with a NUL character cannot be stored."),
            StoreFault::Busy => {
                tracing::warn!("{error}");
                let answer = Self::new(ErrorKind::Overloaded, "The store is busy.").hint("Try again in a moment.");
                Self { retry_after: Some(Duration::from_secs(1)), ..answer }
            }
            // These may resolve themselves: a full disk, a restarting database.
            StoreFault::Unreachable | StoreFault::NotWritable | StoreFault::Full => {
                tracing::error!("{error}");
                let answer = Self::new(ErrorKind::Overloaded, "The store cannot be used at the moment.");
                answer.hint("Try again later. The log of hikite has the reason.").after(RETRY_DELAY)
            }
            _ => {
                tracing::error!("{error}");
                Self::new(ErrorKind::Internal, "The store failed.").hint("The log of hikite has the reason.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_fault_in_order() {
        for (index, text) in TABLE.iter().enumerate() {
            assert_eq!(text.fault as usize, index, "{:?}", text.fault);
        }
        assert_eq!(StoreFault::Failed as usize + 1, TABLE.len());
    }

    #[test]
    fn codes_of_both_databases_are_understood() {
        for (code, expected) in [
            ("5", StoreFault::Busy),
            ("261", StoreFault::Busy),
            ("1032", StoreFault::NotWritable),
            ("14", StoreFault::NotWritable),
            ("11", StoreFault::Damaged),
            ("26", StoreFault::Damaged),
            ("13", StoreFault::Full),
            ("1", StoreFault::Failed),
            ("", StoreFault::Failed),
            ("55P03", StoreFault::Busy),
            ("28P01", StoreFault::Refused),
            ("3D000", StoreFault::Refused),
            ("57P01", StoreFault::Unreachable),
            ("42P01", StoreFault::Failed),
        ] {
            assert_eq!(fault_of(code), expected, "{code}");
        }
    }

    #[test]
    fn a_client_is_told_nothing_of_the_inside() {
        for (fault, kind) in [
            (StoreFault::Busy, ErrorKind::Overloaded),
            (StoreFault::Unreachable, ErrorKind::Overloaded),
            (StoreFault::NotWritable, ErrorKind::Overloaded),
            (StoreFault::Full, ErrorKind::Overloaded),
            (StoreFault::Damaged, ErrorKind::Internal),
            (StoreFault::Failed, ErrorKind::Internal),
            (StoreFault::Nul, ErrorKind::Validation),
        ] {
            let error = Error::from(StoreError::new(fault, &StoreUrl::file("/secret/path"), "near \"SELECT\""));
            assert_eq!(error.kind, kind);
            assert_eq!(error.retry_after.is_some(), kind == ErrorKind::Overloaded, "{fault:?}");
            let shown = format!("{error} {error:?} {:?}", error.rpc());
            assert!(!shown.contains("secret") && !shown.contains("SELECT"), "{shown}");
        }
    }
}

//! Store errors and what to do about them. The text is for operators: it names the store and the database's message.
//! Clients see neither (`From<StoreError> for Error`).

use std::time::Duration;

use hikite_core::error::{Error, Kind};

use crate::url::StoreUrl;

#[derive(Clone, Debug, thiserror::Error)]
#[error("the store {place} {}: {reason}\nhint: {}", fault.face().words, fault.face().hint)]
pub struct StoreError {
    pub fault: Fault,
    place: String,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
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

struct Face {
    fault: Fault,
    words: &'static str,
    hint: &'static str,
}

#[rustfmt::skip]
const TABLE: &[Face] = &[
    Face { fault: Fault::Busy,        words: "is busy",
           hint: "try again; if it stays so, look for another program that keeps it locked" },
    Face { fault: Fault::Unreachable, words: "cannot be reached",
           hint: "see whether the database runs there, and check `store.url`" },
    Face { fault: Fault::Refused,     words: "lets us in not at all or not far enough",
           hint: "check user, password and database in `store.url`, and what that user may do" },
    Face { fault: Fault::NotWritable, words: "cannot be written",
           hint: "let hikite's user write the file and its folder, or name another place with `store.url` or `--data`" },
    Face { fault: Fault::Full,        words: "has no room left or cannot be read from its disk",
           hint: "free some space, and look at the disk" },
    Face { fault: Fault::Damaged,     words: "is damaged",
           hint: "stop hikite and put a copy made by `hikite store backup` in its place with `hikite store restore`; \
                  without a copy, move the file away together with its `-wal` and `-shm`: hikite starts anew" },
    Face { fault: Fault::Foreign,     words: "is another program's database",
           hint: "give hikite a file or a database of its own in `store.url`" },
    Face { fault: Fault::Newer,       words: "was written by a newer hikite",
           hint: "start that hikite or a later one, or go back to a copy from before" },
    Face { fault: Fault::NotEmpty,    words: "is not empty",
           hint: "copy into a store that nobody has used yet" },
    Face { fault: Fault::InUse,       words: "is in use",
           hint: "stop every hikite that runs on it, and whatever else has it open; then try again" },
    Face { fault: Fault::Exists,      words: "cannot be copied there",
           hint: "name a file that does not exist yet" },
    Face { fault: Fault::Nul,         words: "cannot keep this name",
           hint: "leave out the NUL character" },
    Face { fault: Fault::Failed,      words: "failed",
           hint: "`hikite store check` looks for what is wrong with it" },
];

impl Fault {
    /// Describes the fault, without location or database message.
    pub fn words(self) -> &'static str {
        self.face().words
    }

    fn face(self) -> &'static Face {
        // The table lists every fault (see the test below).
        TABLE.iter().find(|face| face.fault == self).unwrap_or(&TABLE[0])
    }
}

impl StoreError {
    pub(crate) fn new(fault: Fault, place: &StoreUrl, reason: impl Into<String>) -> Self {
        Self { fault, place: place.to_string(), reason: reason.into() }
    }

    /// Returns `true` if the error may resolve itself: the database is unreachable, starting, or out of connections.
    pub fn is_away(&self) -> bool {
        matches!(self.fault, Fault::Unreachable | Fault::Busy)
    }

    pub(crate) fn of(place: &StoreUrl, error: &sqlx::Error) -> Self {
        let fault = match error {
            sqlx::Error::PoolTimedOut => Fault::Busy,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) => Fault::Unreachable,
            sqlx::Error::Database(answer) => fault_of(answer.code().as_deref().unwrap_or_default()),
            _ => Fault::Failed,
        };
        let reason = match error {
            sqlx::Error::PoolTimedOut => "no connection became free in time".to_owned(),
            sqlx::Error::Database(answer) => answer.message().to_owned(),
            other => other.to_string(),
        };
        Self::new(fault, place, reason)
    }
}

/// Maps an error code. SQLite codes are numbers with the kind in the low byte; PostgreSQL codes have five characters.
fn fault_of(code: &str) -> Fault {
    if code.len() == 5 {
        return match code {
            "55P03" | "57014" | "40P01" | "40001" | "53300" | "57P03" => Fault::Busy,
            "42501" | "3D000" | "25006" => Fault::Refused,
            "53100" | "53200" | "58030" => Fault::Full,
            "XX001" | "XX002" => Fault::Damaged,
            _ if code.starts_with("28") => Fault::Refused,
            _ if code.starts_with("08") || code.starts_with("57P") => Fault::Unreachable,
            _ => Fault::Failed,
        };
    }
    match code.parse::<u32>().unwrap_or_default() & 0xff {
        5 | 6 => Fault::Busy,
        3 | 8 | 14 | 23 => Fault::NotWritable,
        10 | 13 => Fault::Full,
        11 | 26 => Fault::Damaged,
        _ => Fault::Failed,
    }
}

/// Delay before retrying an unreachable store.
const LATER: Duration = Duration::from_secs(5);

/// Converts a store error into a response: the error is logged here, and the response reveals none of it.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error.fault {
            Fault::Nul => Self::new(Kind::Validation, "a name with a NUL character cannot be kept"),
            Fault::Busy => {
                tracing::warn!("{error}");
                let answer = Self::new(Kind::Overloaded, "the store is busy").hint("try again in a moment");
                Self { retry_after: Some(Duration::from_secs(1)), ..answer }
            }
            // These may resolve themselves: a full disk, a restarting database.
            Fault::Unreachable | Fault::NotWritable | Fault::Full => {
                tracing::error!("{error}");
                let answer = Self::new(Kind::Overloaded, "the store cannot be used at the moment");
                answer.hint("try again later; the log of hikite says why").after(LATER)
            }
            _ => {
                tracing::error!("{error}");
                Self::new(Kind::Internal, "the store failed").hint("the log of hikite says why")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_fault_in_order() {
        for (index, face) in TABLE.iter().enumerate() {
            assert_eq!(face.fault as usize, index, "{:?}", face.fault);
        }
        assert_eq!(Fault::Failed as usize + 1, TABLE.len());
    }

    #[test]
    fn codes_of_both_databases_are_understood() {
        for (code, expected) in [
            ("5", Fault::Busy),
            ("261", Fault::Busy),
            ("1032", Fault::NotWritable),
            ("14", Fault::NotWritable),
            ("11", Fault::Damaged),
            ("26", Fault::Damaged),
            ("13", Fault::Full),
            ("1", Fault::Failed),
            ("", Fault::Failed),
            ("55P03", Fault::Busy),
            ("28P01", Fault::Refused),
            ("3D000", Fault::Refused),
            ("57P01", Fault::Unreachable),
            ("42P01", Fault::Failed),
        ] {
            assert_eq!(fault_of(code), expected, "{code}");
        }
    }

    #[test]
    fn a_client_is_told_nothing_of_the_inside() {
        for (fault, kind) in [
            (Fault::Busy, Kind::Overloaded),
            (Fault::Unreachable, Kind::Overloaded),
            (Fault::NotWritable, Kind::Overloaded),
            (Fault::Full, Kind::Overloaded),
            (Fault::Damaged, Kind::Internal),
            (Fault::Failed, Kind::Internal),
            (Fault::Nul, Kind::Validation),
        ] {
            let error =
                Error::from(StoreError::new(fault, &StoreUrl::file("/secret/path"), "near \"SELECT\""));
            assert_eq!(error.kind, kind);
            assert_eq!(error.retry_after.is_some(), kind == Kind::Overloaded, "{fault:?}");
            let shown = format!("{error} {error:?} {:?}", error.rpc());
            assert!(!shown.contains("secret") && !shown.contains("SELECT"), "{shown}");
        }
    }
}

//! The clock that deletions by age rely on. PostgreSQL has its own, shared by all nodes. A SQLite file uses the
//! machine's clock, which may be wrong: an unexplained jump of more than a day is reported, and nothing is deleted
//! until a person confirms the clock or it is right again.

mod machine;

use sqlx::{AnyConnection, Row};

use crate::connect::DatabaseEngine;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{shown, stored};
pub use machine::{machine_clock, now_ms};

/// A larger difference is a jump.
const JUMP_MS: u64 = 24 * 3600 * 1000;
/// Interval at which the clock is recorded.
const WRITE_MS: u64 = 60 * 1000;

/// The clocks of this machine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineClock {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Boot data, if the system provides it.
    pub boot: Option<Boot>,
}

/// The time since boot, including sleep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Changes with every boot.
    pub id: String,
    pub uptime_ms: u64,
}

/// A wall clock that is more than a day off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// Expected milliseconds since 1970; the last known value if the elapsed time is unknown.
    pub expected: u64,
    /// Actual milliseconds since 1970.
    pub found: u64,
}

/// The last trusted reading of the clock.
struct ClockReading {
    at: u64,
    boot: String,
    uptime: u64,
}

/// The clock of a store.
#[derive(Debug)]
pub struct StoreClock<'a>(pub(crate) &'a Database);

impl StoreClock<'_> {
    /// Returns the current time of the database, in milliseconds since 1970.
    pub async fn now_ms(&self) -> Result<u64, StoreError> {
        let text = format!("SELECT {}", self.0.engine.now_ms());
        let row = sqlx::query(&text).fetch_one(self.0.reader()).await.map_err(self.0.failed())?;
        row.try_get(0).map(shown).map_err(self.0.failed())
    }

    /// Returns the jump of this machine's clock, if there is one and the store uses that clock.
    pub async fn jump(&self, clock: &MachineClock) -> Result<Option<ClockJump>, StoreError> {
        if self.0.engine == DatabaseEngine::Postgres {
            return Ok(None);
        }
        let mut connection = self.0.reader().acquire().await.map_err(self.0.failed())?;
        let last_reading = last_reading(&mut connection).await.map_err(self.0.failed())?;
        Ok(last_reading.and_then(|last_reading| jump(&last_reading, clock)))
    }

    /// Returns a jump of the clock, or records the clock as right.
    pub async fn check(&self, clock: &MachineClock) -> Result<Option<ClockJump>, StoreError> {
        if self.0.engine == DatabaseEngine::Postgres {
            return Ok(None);
        }
        let mut transaction = self.0.begin().await?;
        let found = watch(&mut transaction, clock).await.map_err(self.0.failed())?;
        transaction.commit().await.map_err(self.0.failed())?;
        Ok(found)
    }

    /// Records the clock as right, as confirmed by a person.
    pub async fn confirm(&self, clock: &MachineClock) -> Result<(), StoreError> {
        let mut transaction = self.0.begin().await?;
        write(&mut transaction, clock).await.map_err(self.0.failed())?;
        transaction.commit().await.map_err(self.0.failed())
    }
}

/// Returns a jump of the clock, or records the clock as right, within a transaction.
pub(crate) async fn watch(
    connection: &mut AnyConnection,
    clock: &MachineClock,
) -> Result<Option<ClockJump>, sqlx::Error> {
    let last_reading = last_reading(connection).await?;
    let found = last_reading.as_ref().and_then(|last_reading| jump(last_reading, clock));
    let is_fresh = |last_reading: &ClockReading| {
        let same_boot = clock.boot.as_ref().is_none_or(|boot| boot.id == last_reading.boot);
        same_boot && clock.wall_ms.abs_diff(last_reading.at) < WRITE_MS
    };
    if found.is_none() && !last_reading.as_ref().is_some_and(is_fresh) {
        write(connection, clock).await?;
    }
    Ok(found)
}

/// Returns the last reading. Without one, the newest audit record tells when the store was last used.
async fn last_reading(connection: &mut AnyConnection) -> Result<Option<ClockReading>, sqlx::Error> {
    let query = sqlx::query("SELECT at, boot, uptime FROM clock_seen WHERE name = 'machine'");
    if let Some(row) = query.fetch_optional(&mut *connection).await? {
        let (at, uptime) = (shown(row.try_get(0)?), shown(row.try_get(2)?));
        return Ok(Some(ClockReading { at, boot: row.try_get(1)?, uptime }));
    }
    let query = sqlx::query("SELECT at FROM audit ORDER BY seq DESC LIMIT 1");
    let row = query.fetch_optional(connection).await?;
    row.map(|row| Ok(ClockReading { at: shown(row.try_get(0)?), boot: String::new(), uptime: 0 })).transpose()
}

async fn write(connection: &mut AnyConnection, clock: &MachineClock) -> Result<(), sqlx::Error> {
    let query = sqlx::query(
        "INSERT INTO clock_seen (name, at, boot, uptime) VALUES ('machine', $1, $2, $3) ON CONFLICT (name) DO UPDATE \
         SET at = excluded.at, boot = excluded.boot, uptime = excluded.uptime",
    );
    let (boot, uptime) = clock.boot.as_ref().map_or(("", 0), |boot| (&*boot.id, boot.uptime_ms));
    query.bind(stored(clock.wall_ms)).bind(boot).bind(stored(uptime)).execute(connection).await.map(drop)
}

fn jump(last_reading: &ClockReading, clock: &MachineClock) -> Option<ClockJump> {
    let passed = match &clock.boot {
        Some(boot) if boot.id == last_reading.boot => boot.uptime_ms.saturating_sub(last_reading.uptime),
        _ => 0,
    };
    let expected = last_reading.at.saturating_add(passed);
    (clock.wall_ms.abs_diff(expected) > JUMP_MS).then_some(ClockJump { expected, found: clock.wall_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = JUMP_MS;

    fn last_reading(at: u64, boot: &str, uptime: u64) -> ClockReading {
        ClockReading { at, boot: boot.into(), uptime }
    }

    fn clock(wall_ms: u64, boot: Option<(&str, u64)>) -> MachineClock {
        MachineClock { wall_ms, boot: boot.map(|(id, uptime_ms)| Boot { id: id.into(), uptime_ms }) }
    }

    #[test]
    fn only_what_nothing_explains_is_a_jump() {
        let at = 1000 * DAY;
        for (last_reading, clock, jumped) in [
            (last_reading(at, "a", 5), clock(at + DAY, Some(("a", 5))), false),
            (last_reading(at, "a", 5), clock(at + DAY + 1, Some(("a", 5))), true),
            (last_reading(at, "a", 5), clock(at - DAY - 1, Some(("a", 5))), true),
            // The machine ran or slept for the same time.
            (last_reading(at, "a", 5), clock(at + 30 * DAY, Some(("a", 5 + 30 * DAY))), false),
            (last_reading(at, "a", 5), clock(at + 365 * DAY, Some(("a", 5 + 30 * DAY))), true),
            (last_reading(at, "a", 5), clock(at, Some(("a", 5 + 30 * DAY))), true),
            // The machine was off for an unknown time.
            (last_reading(at, "a", 5), clock(at + DAY, Some(("b", 9 * DAY))), false),
            (last_reading(at, "a", 5), clock(at + 2 * DAY, Some(("b", 5))), true),
            (last_reading(at, "", 0), clock(at + 2 * DAY, None), true),
            (last_reading(at, "", 0), clock(at + DAY, None), false),
        ] {
            assert_eq!(jump(&last_reading, &clock).is_some(), jumped, "{clock:?}");
        }
    }
}

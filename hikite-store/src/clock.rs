//! Which time a store goes by when it deletes something. PostgreSQL has a clock of its own, which all nodes share. A SQLite
//! file has the clock of its machine, and that one may be wrong: a jump of more than a day that nothing explains is told,
//! and nothing is deleted by such a clock until a person confirms it or it is right again.

use sqlx::{AnyConnection, Row};

use crate::connect::Engine;
use crate::control::{shown, stored};
use crate::error::StoreError;
use crate::store::Store;

/// A difference of more than this is a jump.
const JUMP_MS: u64 = 24 * 3600 * 1000;
/// The clock is written down again after so long.
const WRITE_MS: u64 = 60 * 1000;

/// The clocks of this machine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineClock {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Where the system tells it.
    pub boot: Option<Boot>,
}

/// How long the system has run, time asleep included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Another one after every start of the system.
    pub id: String,
    pub uptime_ms: u64,
}

/// The wall clock is more than a day away from where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// Milliseconds since 1970 as they should be; where nothing is known of the time between, as they last were.
    pub expected: u64,
    /// And as the clock has them.
    pub found: u64,
}

/// The clock as it was last found to be right.
struct Seen {
    at: u64,
    boot: String,
    uptime: u64,
}

impl Store {
    /// Now, in milliseconds since 1970, by the database's clock.
    pub async fn now_ms(&self) -> Result<u64, StoreError> {
        let text = format!("SELECT {}", self.engine().now_ms());
        let row = sqlx::query(&text).fetch_one(self.reader()).await.map_err(self.failed())?;
        row.try_get(0).map(shown).map_err(self.failed())
    }

    /// The jump of this machine's clock, if it made one and the store goes by that clock.
    pub async fn clock_jump(&self, clock: &MachineClock) -> Result<Option<ClockJump>, StoreError> {
        if self.engine() == Engine::Postgres {
            return Ok(None);
        }
        let mut connection = self.reader().acquire().await.map_err(self.failed())?;
        let seen = seen(&mut connection).await.map_err(self.failed())?;
        Ok(seen.and_then(|seen| jump(&seen, clock)))
    }

    /// Tells a jump likewise, and without one writes down that the clock is right.
    pub async fn watch_clock(&self, clock: &MachineClock) -> Result<Option<ClockJump>, StoreError> {
        if self.engine() == Engine::Postgres {
            return Ok(None);
        }
        let mut transaction = self.begin().await?;
        let found = watch(&mut transaction, clock).await.map_err(self.failed())?;
        transaction.commit().await.map_err(self.failed())?;
        Ok(found)
    }

    /// A person says that the clock is right, whatever it was before.
    pub async fn confirm_clock(&self, clock: &MachineClock) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        write(&mut transaction, clock).await.map_err(self.failed())?;
        transaction.commit().await.map_err(self.failed())
    }
}

/// The same within a transaction.
pub(crate) async fn watch(
    connection: &mut AnyConnection,
    clock: &MachineClock,
) -> Result<Option<ClockJump>, sqlx::Error> {
    let seen = seen(connection).await?;
    let found = seen.as_ref().and_then(|seen| jump(seen, clock));
    let is_fresh = |seen: &Seen| {
        let same_boot = clock.boot.as_ref().is_none_or(|boot| boot.id == seen.boot);
        same_boot && clock.wall_ms.abs_diff(seen.at) < WRITE_MS
    };
    if found.is_none() && !seen.as_ref().is_some_and(is_fresh) {
        write(connection, clock).await?;
    }
    Ok(found)
}

/// Where nothing was written down yet, the newest record of the audit says when the store was last in use.
async fn seen(connection: &mut AnyConnection) -> Result<Option<Seen>, sqlx::Error> {
    let query = sqlx::query("SELECT at, boot, uptime FROM clock_seen WHERE name = 'machine'");
    if let Some(row) = query.fetch_optional(&mut *connection).await? {
        let (at, uptime) = (shown(row.try_get(0)?), shown(row.try_get(2)?));
        return Ok(Some(Seen { at, boot: row.try_get(1)?, uptime }));
    }
    let query = sqlx::query("SELECT at FROM audit ORDER BY seq DESC LIMIT 1");
    let row = query.fetch_optional(connection).await?;
    row.map(|row| Ok(Seen { at: shown(row.try_get(0)?), boot: String::new(), uptime: 0 })).transpose()
}

async fn write(connection: &mut AnyConnection, clock: &MachineClock) -> Result<(), sqlx::Error> {
    let query = sqlx::query(
        "INSERT INTO clock_seen (name, at, boot, uptime) VALUES ('machine', $1, $2, $3) ON CONFLICT (name) DO UPDATE \
         SET at = excluded.at, boot = excluded.boot, uptime = excluded.uptime",
    );
    let (boot, uptime) = clock.boot.as_ref().map_or(("", 0), |boot| (&*boot.id, boot.uptime_ms));
    query.bind(stored(clock.wall_ms)).bind(boot).bind(stored(uptime)).execute(connection).await.map(drop)
}

fn jump(seen: &Seen, clock: &MachineClock) -> Option<ClockJump> {
    let passed = match &clock.boot {
        Some(boot) if boot.id == seen.boot => boot.uptime_ms.saturating_sub(seen.uptime),
        _ => 0,
    };
    let expected = seen.at.saturating_add(passed);
    (clock.wall_ms.abs_diff(expected) > JUMP_MS).then_some(ClockJump { expected, found: clock.wall_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = JUMP_MS;

    fn seen(at: u64, boot: &str, uptime: u64) -> Seen {
        Seen { at, boot: boot.into(), uptime }
    }

    fn clock(wall_ms: u64, boot: Option<(&str, u64)>) -> MachineClock {
        MachineClock { wall_ms, boot: boot.map(|(id, uptime_ms)| Boot { id: id.into(), uptime_ms }) }
    }

    #[test]
    fn only_what_nothing_explains_is_a_jump() {
        let at = 1000 * DAY;
        for (seen, clock, jumped) in [
            (seen(at, "a", 5), clock(at + DAY, Some(("a", 5))), false),
            (seen(at, "a", 5), clock(at + DAY + 1, Some(("a", 5))), true),
            (seen(at, "a", 5), clock(at - DAY - 1, Some(("a", 5))), true),
            // The machine ran, or slept, for as long.
            (seen(at, "a", 5), clock(at + 30 * DAY, Some(("a", 5 + 30 * DAY))), false),
            (seen(at, "a", 5), clock(at + 365 * DAY, Some(("a", 5 + 30 * DAY))), true),
            (seen(at, "a", 5), clock(at, Some(("a", 5 + 30 * DAY))), true),
            // It was switched off, and nobody can tell for how long.
            (seen(at, "a", 5), clock(at + DAY, Some(("b", 9 * DAY))), false),
            (seen(at, "a", 5), clock(at + 2 * DAY, Some(("b", 5))), true),
            (seen(at, "", 0), clock(at + 2 * DAY, None), true),
            (seen(at, "", 0), clock(at + DAY, None), false),
        ] {
            assert_eq!(jump(&seen, &clock).is_some(), jumped, "{clock:?}");
        }
    }
}

//! The only crate that knows SQL: what must survive a restart, in SQLite or PostgreSQL.

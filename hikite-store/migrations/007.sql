-- The audit is trimmed by the database's clock, every trim leaves a record in the chain, and a million records are
-- searched through indexes.

-- `audit_mark` says how far the chain went when the database's clock said `at`: a record is at least as old as the first
-- mark that covers it, whatever the node that wrote it took for the time.
CREATE TABLE audit_mark (
    seq BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL
);

-- The clock of the machine that a SQLite file lies on, as it was last found to be right. `boot` and `uptime` (ms) are
-- empty and zero where the system does not tell them.
CREATE TABLE clock_seen (
    name TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    boot TEXT NOT NULL,
    uptime BIGINT NOT NULL
);

-- Beside `first` and `last`: `trimmed` is how far trim records cover the chain, and records beyond it cannot be deleted
-- (a trigger sees to that, also for nodes of the version before). `first_v6` and `last_v6` are the ends as this version
-- found them: what was trimmed before then left no record, and what was written before then has no mark.
INSERT INTO audit_end (name, seq, hash) SELECT 'trimmed', seq, hash FROM audit_end WHERE name = 'first';
INSERT INTO audit_end (name, seq, hash) SELECT 'first_v6', seq, hash FROM audit_end WHERE name = 'first';
INSERT INTO audit_end (name, seq, hash) SELECT 'last_v6', seq, hash FROM audit_end WHERE name = 'last';

-- Each filter finds its records in the order of the chain.
CREATE INDEX audit_at_seq ON audit (at, seq);
DROP INDEX audit_at;
CREATE INDEX audit_kind ON audit (kind, seq);
CREATE INDEX audit_decision ON audit (decision, seq);
CREATE INDEX audit_outcome ON audit (outcome, seq);
CREATE INDEX audit_project ON audit (project, seq);
CREATE INDEX audit_module ON audit (module, seq);
CREATE INDEX audit_tool ON audit (tool, seq);

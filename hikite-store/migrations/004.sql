-- What was done, by whom: appended, never changed. Each hash covers the record and the hash before it; the columns
-- between `seq` and `record` repeat members of the record, to find it by.

CREATE TABLE audit (
    seq BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    decision TEXT NOT NULL,
    outcome TEXT NOT NULL,
    request_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    project TEXT NOT NULL,
    module TEXT NOT NULL,
    tool TEXT NOT NULL,
    record TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_request ON audit (request_id);
CREATE INDEX audit_subject ON audit (subject, seq);

-- Where the chain begins (the last record that retention took away) and where it ends.
CREATE TABLE audit_end (
    name TEXT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL
);
INSERT INTO audit_end (name, seq, hash) VALUES ('first', 0, ''), ('last', 0, '');

-- Which rows each revision changed, so that a node that follows another reads those and nothing else. Revisions that a node
-- of the version before made have no rows here: whoever meets such a gap reads everything. Old rows are removed in passing.
CREATE TABLE change_log (
    revision BIGINT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (revision, kind, id)
);

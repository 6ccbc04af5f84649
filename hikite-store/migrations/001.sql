-- One text for SQLite and PostgreSQL: TEXT, and BIGINT for numbers, times (ms since 1970) and switches (0, 1).

-- `version` is the last migration that was applied; `revision` grows with every change of what people decide.
CREATE TABLE hikite (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO hikite (name, value) VALUES ('version', 0), ('revision', 0);

CREATE TABLE registered_tool (
    module TEXT NOT NULL,
    tool TEXT NOT NULL,
    form TEXT NOT NULL,
    registered_at BIGINT NOT NULL,
    PRIMARY KEY (module, tool)
);

CREATE TABLE tool_switch (
    module TEXT NOT NULL,
    tool TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    PRIMARY KEY (module, tool)
);

CREATE TABLE tool_seen (
    module TEXT NOT NULL,
    tool TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (module, tool)
);

CREATE TABLE list_cache (
    definition TEXT NOT NULL PRIMARY KEY,
    lists TEXT NOT NULL,
    fetched_at BIGINT NOT NULL
);

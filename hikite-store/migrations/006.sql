-- People in a table of their own. `id` is never given to anybody else; `name` is a label that may change; `subject` is
-- the key that logins, consents, grants, passkeys, accounts and tokens of this person carry. For users made from now on
-- it is the id. Those who were here before keep the key they had, so that nodes of the version before go on serving them:
-- they read `drawer` of the kind `user`, which mirrors this table (`id` = name, `owner` = subject, same `version`).
-- `password`, `permissions` (JSON) and `project` are empty where there is none.
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    password TEXT NOT NULL,
    permissions TEXT NOT NULL,
    disabled BIGINT NOT NULL,
    project TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL
);

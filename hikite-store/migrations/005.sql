-- Small forms that belong to somebody, each kind in a drawer of its own: users, their logins, clients, consents, grants,
-- accounts. Those with an end are taken out after it.
CREATE TABLE drawer (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    form TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX drawer_owner ON drawer (kind, owner);
CREATE INDEX drawer_end ON drawer (expires_at);

-- Secrets, sealed: a key for each account, and what is under it.
CREATE TABLE vault_key (
    account TEXT NOT NULL PRIMARY KEY,
    key_id TEXT NOT NULL,
    sealed TEXT NOT NULL
);
CREATE TABLE vault_secret (
    account TEXT NOT NULL,
    provider TEXT NOT NULL,
    field TEXT NOT NULL,
    version BIGINT NOT NULL,
    sealed TEXT NOT NULL,
    PRIMARY KEY (account, provider, field)
);

-- Who does something that only one may do at a time. The fence grows with every new holder.
CREATE TABLE lease (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    fence BIGINT NOT NULL,
    until BIGINT NOT NULL
);

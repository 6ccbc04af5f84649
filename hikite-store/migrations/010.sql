-- Typed tables for what `drawer` held as JSON. Nodes of the version before still read and write `drawer`; triggers
-- (010.sqlite.sql, 010.postgres.sql) keep both sides the same, and a later version drops them together with `drawer`.
-- `version` starts at 1 and grows with every change; lists and maps are JSON; text is empty where there is none;
-- `expires_at` 0 is never.

-- Logins of browsers. `id` is the hash of the cookie.
CREATE TABLE logins (
    id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL REFERENCES users (subject) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX logins_subject ON logins (subject);
CREATE INDEX logins_expires_at ON logins (expires_at);

-- `id` is the credential id; `public_key` is COSE. Both are base64url.
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL REFERENCES users (subject) ON DELETE CASCADE,
    name TEXT NOT NULL,
    public_key TEXT NOT NULL,
    counter BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX passkeys_subject ON passkeys (subject);

-- OAuth clients. `grant_id` is the grant of the client credentials flow; `address` is where an unused client came from.
CREATE TABLE clients (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    origin TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    approved TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    looked_up_at BIGINT NOT NULL,
    address TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX clients_expires_at ON clients (expires_at);

-- `client` refers to no row, here and in `grants`, because well-known clients have none.
CREATE TABLE consents (
    id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL REFERENCES users (subject) ON DELETE CASCADE,
    client TEXT NOT NULL,
    scopes TEXT NOT NULL,
    project TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX consents_subject ON consents (subject);
CREATE INDEX consents_client ON consents (client);

-- A client that acts for itself has a grant without a subject. `last_*` is what the last refresh returned.
CREATE TABLE grants (
    id TEXT NOT NULL PRIMARY KEY,
    subject TEXT REFERENCES users (subject) ON DELETE CASCADE,
    client TEXT NOT NULL,
    scopes TEXT NOT NULL,
    project TEXT NOT NULL,
    generation BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    sealed_key TEXT NOT NULL,
    last_access TEXT NOT NULL,
    last_scopes TEXT NOT NULL,
    last_expires_at BIGINT NOT NULL,
    last_project TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX grants_subject ON grants (subject);
CREATE INDEX grants_client ON grants (client);
CREATE INDEX grants_expires_at ON grants (expires_at);

-- Accounts with services. `subject` need not be a user: a token that acts for no user has accounts, too.
CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    provider TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    problem TEXT NOT NULL,
    verified_at BIGINT NOT NULL,
    is_default BIGINT NOT NULL,
    shared BIGINT NOT NULL,
    scopes TEXT NOT NULL,
    email TEXT NOT NULL,
    details TEXT NOT NULL,
    api TEXT NOT NULL,
    token_expires_at BIGINT NOT NULL,
    last_refresh BIGINT NOT NULL,
    permissions TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX accounts_subject ON accounts (subject, provider);

-- Approved and blocked tool definitions. `id` is `module:tool`.
CREATE TABLE pins (
    id TEXT NOT NULL PRIMARY KEY,
    module TEXT NOT NULL,
    hash TEXT NOT NULL,
    blocked BIGINT NOT NULL,
    pinned_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX pins_module ON pins (module);

-- JSON whose members belong to its user alone, by kind: settings, and the short-lived steps of a login or a connection.
CREATE TABLE documents (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    document TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX documents_owner ON documents (kind, owner);
CREATE INDEX documents_expires_at ON documents (expires_at);

-- Who may come in, and the boundary it works in.

-- `form` is the project as people write it: description, members, permissions, surface, optimization.
CREATE TABLE project (
    name TEXT NOT NULL PRIMARY KEY,
    form TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Only a hash of the secret is kept. `project` is empty where it has none; `form` holds what it is called, its subject
-- and its scopes; `expires_at` 0 is never.
CREATE TABLE token (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    form TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

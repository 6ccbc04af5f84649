-- Generated once for migration 010; see 010.sql. First the rows that are there, then the triggers that keep `drawer`, which
-- nodes of the version before read and write, and the tables the same. A row goes across if the other side has another
-- version of it, so no trigger starts a circle.

INSERT INTO logins (id, subject, version, created_at, expires_at)
SELECT
    d.id, d.owner, d.version, d.created_at, d.expires_at
FROM drawer d WHERE json_valid(d.form)
    AND d.kind = 'login'
    AND EXISTS (SELECT 1 FROM users WHERE subject = d.owner)
    AND NOT EXISTS (SELECT 1 FROM logins WHERE id = d.id);
INSERT INTO passkeys (id, subject, name, public_key, counter, version, created_at)
SELECT
    d.id, d.owner, COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.name'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.public_key'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.counter'), 0), d.version, d.created_at
FROM drawer d WHERE json_valid(d.form)
    AND d.kind = 'passkey'
    AND EXISTS (SELECT 1 FROM users WHERE subject = d.owner)
    AND NOT EXISTS (SELECT 1 FROM passkeys WHERE id = d.id);
INSERT INTO clients (id, name, origin, redirect_uris, approved, secret_hash, grant_id, looked_up_at, address, version, created_at, expires_at)
SELECT
    d.id, COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.name'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.origin'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.redirect_uris'), '[]'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.approved'), '[]'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.secret'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.grant'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.looked_up_at'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.from'), ''), d.version, d.created_at,
    d.expires_at
FROM drawer d WHERE json_valid(d.form)
    AND d.kind = 'client'
    AND NOT EXISTS (SELECT 1 FROM clients WHERE id = d.id);
INSERT INTO consents (id, subject, client, scopes, project, version, created_at)
SELECT
    d.id, d.owner, COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.client'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.project'), ''), d.version, d.created_at
FROM drawer d WHERE json_valid(d.form)
    AND d.kind = 'consent'
    AND EXISTS (SELECT 1 FROM users WHERE subject = d.owner)
    AND NOT EXISTS (SELECT 1 FROM consents WHERE id = d.id);
INSERT INTO grants (id, subject, client, scopes, project, generation, rotated_at, key_id, sealed_key, last_access, last_scopes, last_expires_at, last_project, version, created_at, expires_at)
SELECT
    d.id, CASE WHEN json_extract(replace(d.form, '\u0000', '\ufffd'), '$.own') THEN NULL ELSE d.owner END,
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.client'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.project'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.generation'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.rotated_at'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.key_id'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.key'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.access'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.scopes'), '[]'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.expires_at'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.project'), ''), d.version, d.created_at,
    d.expires_at
FROM drawer d WHERE json_valid(d.form)
    AND d.kind = 'grant'
    AND (CASE WHEN json_valid(d.form) THEN json_extract(replace(d.form, '\u0000', '\ufffd'), '$.own') END OR EXISTS (SELECT 1 FROM users WHERE subject = d.owner))
    AND NOT EXISTS (SELECT 1 FROM grants WHERE id = d.id);
INSERT INTO accounts (id, subject, provider, name, status, problem, verified_at, is_default, shared, scopes, email, details, api, token_expires_at, last_refresh, permissions, version, created_at)
SELECT
    d.id, d.owner, COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.provider'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.name'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.state'), 'connected'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.problem'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.verified_at'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.default'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.shared'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.email'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.details'), '{}'),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.api'), ''),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.expires_at'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last_refresh'), 0),
    COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.permissions'), '{}'), d.version, d.created_at
FROM drawer d WHERE json_valid(d.form)
    AND d.kind = 'account'
    AND NOT EXISTS (SELECT 1 FROM accounts WHERE id = d.id);
INSERT INTO pins (id, module, hash, blocked, pinned_at, version, created_at)
SELECT
    d.id, d.owner,
    CASE WHEN json_valid(d.form) THEN COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.hash'), '') ELSE '' END,
    CASE WHEN json_valid(d.form) THEN COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.blocked'), 0) <> 0 OR COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.hash'), '') = '' ELSE 1 END,
    CASE WHEN json_valid(d.form) THEN COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.at'), d.created_at) ELSE d.created_at END,
    d.version, d.created_at
FROM drawer d WHERE d.kind = 'pin'
    AND NOT EXISTS (SELECT 1 FROM pins WHERE id = d.id);
INSERT INTO documents (kind, id, owner, document, version, created_at, expires_at)
SELECT kind, id, owner, form, version, created_at, expires_at FROM drawer WHERE kind NOT IN ('login', 'passkey', 'client', 'consent', 'grant', 'account', 'pin', 'user');

CREATE TRIGGER drawer_login_insert AFTER INSERT ON drawer WHEN NEW.kind = 'login' BEGIN
    INSERT INTO logins (id, subject, version, created_at, expires_at)
    SELECT
        NEW.id, NEW.owner, NEW.version, NEW.created_at, NEW.expires_at
    WHERE json_valid(NEW.form)
        AND EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner)
        AND NOT EXISTS (SELECT 1 FROM logins WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_login_update AFTER UPDATE ON drawer WHEN NEW.kind = 'login' AND NEW.version <> OLD.version BEGIN
    UPDATE logins SET
        subject = NEW.owner, version = NEW.version, expires_at = NEW.expires_at
    WHERE id = NEW.id AND version <> NEW.version AND json_valid(NEW.form);
END;
CREATE TRIGGER drawer_login_delete AFTER DELETE ON drawer WHEN OLD.kind = 'login' BEGIN
    DELETE FROM logins WHERE id = OLD.id;
END;
CREATE TRIGGER logins_insert AFTER INSERT ON logins BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'login', NEW.id, NEW.subject,
        '{}',
        NEW.version, NEW.created_at, NEW.expires_at
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'login' AND id = NEW.id);
END;
CREATE TRIGGER logins_update AFTER UPDATE ON logins WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = NEW.subject, version = NEW.version, expires_at = NEW.expires_at, form =
        '{}'
    WHERE kind = 'login' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER logins_delete AFTER DELETE ON logins BEGIN
    DELETE FROM drawer WHERE kind = 'login' AND id = OLD.id;
END;

CREATE TRIGGER drawer_passkey_insert AFTER INSERT ON drawer WHEN NEW.kind = 'passkey' BEGIN
    INSERT INTO passkeys (id, subject, name, public_key, counter, version, created_at)
    SELECT
        NEW.id, NEW.owner, COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.name'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.public_key'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.counter'), 0), NEW.version,
        NEW.created_at
    WHERE json_valid(NEW.form)
        AND EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner)
        AND NOT EXISTS (SELECT 1 FROM passkeys WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_passkey_update AFTER UPDATE ON drawer WHEN NEW.kind = 'passkey' AND NEW.version <> OLD.version BEGIN
    UPDATE passkeys SET
        subject = NEW.owner, name = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.name'), ''),
        public_key = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.public_key'), ''),
        counter = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.counter'), 0),
        version = NEW.version
    WHERE id = NEW.id AND version <> NEW.version AND json_valid(NEW.form);
END;
CREATE TRIGGER drawer_passkey_delete AFTER DELETE ON drawer WHEN OLD.kind = 'passkey' BEGIN
    DELETE FROM passkeys WHERE id = OLD.id;
END;
CREATE TRIGGER passkeys_insert AFTER INSERT ON passkeys BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'passkey', NEW.id, NEW.subject,
        json_object(
            'id', NEW.id, 'name', NEW.name, 'public_key', NEW.public_key, 'counter', NEW.counter),
        NEW.version, NEW.created_at, 0
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'passkey' AND id = NEW.id);
END;
CREATE TRIGGER passkeys_update AFTER UPDATE ON passkeys WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = NEW.subject, version = NEW.version, form =
        json_object(
            'id', NEW.id, 'name', NEW.name, 'public_key', NEW.public_key, 'counter', NEW.counter)
    WHERE kind = 'passkey' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER passkeys_delete AFTER DELETE ON passkeys BEGIN
    DELETE FROM drawer WHERE kind = 'passkey' AND id = OLD.id;
END;

CREATE TRIGGER drawer_client_insert AFTER INSERT ON drawer WHEN NEW.kind = 'client' BEGIN
    INSERT INTO clients (id, name, origin, redirect_uris, approved, secret_hash, grant_id, looked_up_at, address, version, created_at, expires_at)
    SELECT
        NEW.id, COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.name'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.origin'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.redirect_uris'), '[]'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.approved'), '[]'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.secret'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.grant'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.looked_up_at'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.from'), ''), NEW.version,
        NEW.created_at, NEW.expires_at
    WHERE json_valid(NEW.form)
        AND NOT EXISTS (SELECT 1 FROM clients WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_client_update AFTER UPDATE ON drawer WHEN NEW.kind = 'client' AND NEW.version <> OLD.version BEGIN
    UPDATE clients SET
        name = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.name'), ''),
        origin = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.origin'), ''),
        redirect_uris = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.redirect_uris'), '[]'),
        approved = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.approved'), '[]'),
        secret_hash = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.secret'), ''),
        grant_id = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.grant'), ''),
        looked_up_at = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.looked_up_at'), 0),
        address = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.from'), ''),
        version = NEW.version, expires_at = NEW.expires_at
    WHERE id = NEW.id AND version <> NEW.version AND json_valid(NEW.form);
END;
CREATE TRIGGER drawer_client_delete AFTER DELETE ON drawer WHEN OLD.kind = 'client' BEGIN
    DELETE FROM clients WHERE id = OLD.id;
END;
CREATE TRIGGER clients_insert AFTER INSERT ON clients BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'client', NEW.id, '',
        json_object(
            'name', NEW.name, 'origin', NEW.origin, 'redirect_uris', json(NEW.redirect_uris),
            'approved', json(NEW.approved), 'secret', NULLIF(NEW.secret_hash, ''),
            'grant', NULLIF(NEW.grant_id, ''), 'looked_up_at', NEW.looked_up_at, 'from', NEW.address),
        NEW.version, NEW.created_at, NEW.expires_at
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'client' AND id = NEW.id);
END;
CREATE TRIGGER clients_update AFTER UPDATE ON clients WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = '', version = NEW.version, expires_at = NEW.expires_at, form =
        json_object(
            'name', NEW.name, 'origin', NEW.origin, 'redirect_uris', json(NEW.redirect_uris),
            'approved', json(NEW.approved), 'secret', NULLIF(NEW.secret_hash, ''),
            'grant', NULLIF(NEW.grant_id, ''), 'looked_up_at', NEW.looked_up_at, 'from', NEW.address)
    WHERE kind = 'client' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER clients_delete AFTER DELETE ON clients BEGIN
    DELETE FROM drawer WHERE kind = 'client' AND id = OLD.id;
END;

CREATE TRIGGER drawer_consent_insert AFTER INSERT ON drawer WHEN NEW.kind = 'consent' BEGIN
    INSERT INTO consents (id, subject, client, scopes, project, version, created_at)
    SELECT
        NEW.id, NEW.owner, COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.client'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.project'), ''), NEW.version,
        NEW.created_at
    WHERE json_valid(NEW.form)
        AND EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner)
        AND NOT EXISTS (SELECT 1 FROM consents WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_consent_update AFTER UPDATE ON drawer WHEN NEW.kind = 'consent' AND NEW.version <> OLD.version BEGIN
    UPDATE consents SET
        subject = NEW.owner,
        client = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.client'), ''),
        scopes = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        project = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.project'), ''),
        version = NEW.version
    WHERE id = NEW.id AND version <> NEW.version AND json_valid(NEW.form);
END;
CREATE TRIGGER drawer_consent_delete AFTER DELETE ON drawer WHEN OLD.kind = 'consent' BEGIN
    DELETE FROM consents WHERE id = OLD.id;
END;
CREATE TRIGGER consents_insert AFTER INSERT ON consents BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'consent', NEW.id, NEW.subject,
        json_object(
            'client', NEW.client, 'scopes', json(NEW.scopes), 'project', NULLIF(NEW.project, '')),
        NEW.version, NEW.created_at, 0
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'consent' AND id = NEW.id);
END;
CREATE TRIGGER consents_update AFTER UPDATE ON consents WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = NEW.subject, version = NEW.version, form =
        json_object(
            'client', NEW.client, 'scopes', json(NEW.scopes), 'project', NULLIF(NEW.project, ''))
    WHERE kind = 'consent' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER consents_delete AFTER DELETE ON consents BEGIN
    DELETE FROM drawer WHERE kind = 'consent' AND id = OLD.id;
END;

CREATE TRIGGER drawer_grant_insert AFTER INSERT ON drawer WHEN NEW.kind = 'grant' BEGIN
    INSERT INTO grants (id, subject, client, scopes, project, generation, rotated_at, key_id, sealed_key, last_access, last_scopes, last_expires_at, last_project, version, created_at, expires_at)
    SELECT
        NEW.id,
        CASE WHEN json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.own') THEN NULL ELSE NEW.owner END,
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.client'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.project'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.generation'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.rotated_at'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.key_id'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.key'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.access'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.scopes'), '[]'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.expires_at'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.project'), ''), NEW.version,
        NEW.created_at, NEW.expires_at
    WHERE json_valid(NEW.form)
        AND (CASE WHEN json_valid(NEW.form) THEN json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.own') END OR EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner))
        AND NOT EXISTS (SELECT 1 FROM grants WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_grant_update AFTER UPDATE ON drawer WHEN NEW.kind = 'grant' AND NEW.version <> OLD.version BEGIN
    UPDATE grants SET
        subject = CASE WHEN json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.own') THEN NULL ELSE NEW.owner END,
        client = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.client'), ''),
        scopes = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        project = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.project'), ''),
        generation = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.generation'), 0),
        rotated_at = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.rotated_at'), 0),
        key_id = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.key_id'), ''),
        sealed_key = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.key'), ''),
        last_access = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.access'), ''),
        last_scopes = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.scopes'), '[]'),
        last_expires_at = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.expires_at'), 0),
        last_project = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last.project'), ''),
        version = NEW.version, expires_at = NEW.expires_at
    WHERE id = NEW.id AND version <> NEW.version AND json_valid(NEW.form);
END;
CREATE TRIGGER drawer_grant_delete AFTER DELETE ON drawer WHEN OLD.kind = 'grant' BEGIN
    DELETE FROM grants WHERE id = OLD.id;
END;
CREATE TRIGGER grants_insert AFTER INSERT ON grants BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'grant', NEW.id, COALESCE(NEW.subject, 'client:' || NEW.client),
        json_object(
            'own', json(CASE WHEN NEW.subject IS NULL THEN 'true' ELSE 'false' END), 'client', NEW.client,
            'scopes', json(NEW.scopes), 'project', NULLIF(NEW.project, ''), 'generation', NEW.generation,
            'rotated_at', NEW.rotated_at, 'key_id', NEW.key_id, 'key', NEW.sealed_key,
            'last', CASE WHEN NEW.last_access = '' THEN NULL ELSE json_object('access', NEW.last_access, 'scopes', json(NEW.last_scopes), 'expires_at', NEW.last_expires_at, 'project', NULLIF(NEW.last_project, '')) END),
        NEW.version, NEW.created_at, NEW.expires_at
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'grant' AND id = NEW.id);
END;
CREATE TRIGGER grants_update AFTER UPDATE ON grants WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = COALESCE(NEW.subject, 'client:' || NEW.client), version = NEW.version, expires_at = NEW.expires_at, form =
        json_object(
            'own', json(CASE WHEN NEW.subject IS NULL THEN 'true' ELSE 'false' END), 'client', NEW.client,
            'scopes', json(NEW.scopes), 'project', NULLIF(NEW.project, ''), 'generation', NEW.generation,
            'rotated_at', NEW.rotated_at, 'key_id', NEW.key_id, 'key', NEW.sealed_key,
            'last', CASE WHEN NEW.last_access = '' THEN NULL ELSE json_object('access', NEW.last_access, 'scopes', json(NEW.last_scopes), 'expires_at', NEW.last_expires_at, 'project', NULLIF(NEW.last_project, '')) END)
    WHERE kind = 'grant' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER grants_delete AFTER DELETE ON grants BEGIN
    DELETE FROM drawer WHERE kind = 'grant' AND id = OLD.id;
END;

CREATE TRIGGER drawer_account_insert AFTER INSERT ON drawer WHEN NEW.kind = 'account' BEGIN
    INSERT INTO accounts (id, subject, provider, name, status, problem, verified_at, is_default, shared, scopes, email, details, api, token_expires_at, last_refresh, permissions, version, created_at)
    SELECT
        NEW.id, NEW.owner, COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.provider'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.name'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.state'), 'connected'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.problem'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.verified_at'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.default'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.shared'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.email'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.details'), '{}'),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.api'), ''),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.expires_at'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last_refresh'), 0),
        COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.permissions'), '{}'), NEW.version,
        NEW.created_at
    WHERE json_valid(NEW.form)
        AND NOT EXISTS (SELECT 1 FROM accounts WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_account_update AFTER UPDATE ON drawer WHEN NEW.kind = 'account' AND NEW.version <> OLD.version BEGIN
    UPDATE accounts SET
        subject = NEW.owner,
        provider = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.provider'), ''),
        name = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.name'), ''),
        status = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.state'), 'connected'),
        problem = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.problem'), ''),
        verified_at = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.verified_at'), 0),
        is_default = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.default'), 0),
        shared = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.shared'), 0),
        scopes = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        email = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.email'), ''),
        details = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.details'), '{}'),
        api = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.api'), ''),
        token_expires_at = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.expires_at'), 0),
        last_refresh = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.last_refresh'), 0),
        permissions = COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.permissions'), '{}'),
        version = NEW.version
    WHERE id = NEW.id AND version <> NEW.version AND json_valid(NEW.form);
END;
CREATE TRIGGER drawer_account_delete AFTER DELETE ON drawer WHEN OLD.kind = 'account' BEGIN
    DELETE FROM accounts WHERE id = OLD.id;
END;
CREATE TRIGGER accounts_insert AFTER INSERT ON accounts BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'account', NEW.id, NEW.subject,
        json_object(
            'provider', NEW.provider, 'name', NEW.name, 'state', NEW.status, 'problem', NULLIF(NEW.problem, ''),
            'verified_at', NEW.verified_at,
            'default', json(CASE NEW.is_default WHEN 0 THEN 'false' ELSE 'true' END),
            'shared', json(CASE NEW.shared WHEN 0 THEN 'false' ELSE 'true' END), 'scopes', json(NEW.scopes),
            'email', NULLIF(NEW.email, ''), 'details', json(NEW.details), 'api', NULLIF(NEW.api, ''),
            'expires_at', NEW.token_expires_at, 'last_refresh', NEW.last_refresh,
            'permissions', json(NEW.permissions)),
        NEW.version, NEW.created_at, 0
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'account' AND id = NEW.id);
END;
CREATE TRIGGER accounts_update AFTER UPDATE ON accounts WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = NEW.subject, version = NEW.version, form =
        json_object(
            'provider', NEW.provider, 'name', NEW.name, 'state', NEW.status, 'problem', NULLIF(NEW.problem, ''),
            'verified_at', NEW.verified_at,
            'default', json(CASE NEW.is_default WHEN 0 THEN 'false' ELSE 'true' END),
            'shared', json(CASE NEW.shared WHEN 0 THEN 'false' ELSE 'true' END), 'scopes', json(NEW.scopes),
            'email', NULLIF(NEW.email, ''), 'details', json(NEW.details), 'api', NULLIF(NEW.api, ''),
            'expires_at', NEW.token_expires_at, 'last_refresh', NEW.last_refresh,
            'permissions', json(NEW.permissions))
    WHERE kind = 'account' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER accounts_delete AFTER DELETE ON accounts BEGIN
    DELETE FROM drawer WHERE kind = 'account' AND id = OLD.id;
END;

CREATE TRIGGER drawer_pin_insert AFTER INSERT ON drawer WHEN NEW.kind = 'pin' BEGIN
    INSERT INTO pins (id, module, hash, blocked, pinned_at, version, created_at)
    SELECT
        NEW.id, NEW.owner,
        CASE WHEN json_valid(NEW.form) THEN COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.hash'), '') ELSE '' END,
        CASE WHEN json_valid(NEW.form) THEN COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.blocked'), 0) <> 0 OR COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.hash'), '') = '' ELSE 1 END,
        CASE WHEN json_valid(NEW.form) THEN COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.at'), NEW.created_at) ELSE NEW.created_at END,
        NEW.version, NEW.created_at
    WHERE NOT EXISTS (SELECT 1 FROM pins WHERE id = NEW.id);
END;
CREATE TRIGGER drawer_pin_update AFTER UPDATE ON drawer WHEN NEW.kind = 'pin' AND NEW.version <> OLD.version BEGIN
    UPDATE pins SET
        module = NEW.owner,
        hash = CASE WHEN json_valid(NEW.form) THEN COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.hash'), '') ELSE '' END,
        blocked = CASE WHEN json_valid(NEW.form) THEN COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.blocked'), 0) <> 0 OR COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.hash'), '') = '' ELSE 1 END,
        pinned_at = CASE WHEN json_valid(NEW.form) THEN COALESCE(json_extract(replace(NEW.form, '\u0000', '\ufffd'), '$.at'), NEW.created_at) ELSE NEW.created_at END,
        version = NEW.version
    WHERE id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER drawer_pin_delete AFTER DELETE ON drawer WHEN OLD.kind = 'pin' BEGIN
    DELETE FROM pins WHERE id = OLD.id;
END;
CREATE TRIGGER pins_insert AFTER INSERT ON pins BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT 'pin', NEW.id, NEW.module,
        json_object(
            'hash', NEW.hash, 'blocked', json(CASE NEW.blocked WHEN 0 THEN 'false' ELSE 'true' END),
            'at', NEW.pinned_at),
        NEW.version, NEW.created_at, 0
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'pin' AND id = NEW.id);
END;
CREATE TRIGGER pins_update AFTER UPDATE ON pins WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = NEW.module, version = NEW.version, form =
        json_object(
            'hash', NEW.hash, 'blocked', json(CASE NEW.blocked WHEN 0 THEN 'false' ELSE 'true' END),
            'at', NEW.pinned_at)
    WHERE kind = 'pin' AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER pins_delete AFTER DELETE ON pins BEGIN
    DELETE FROM drawer WHERE kind = 'pin' AND id = OLD.id;
END;

CREATE TRIGGER drawer_insert AFTER INSERT ON drawer WHEN NEW.kind NOT IN ('login', 'passkey', 'client', 'consent', 'grant', 'account', 'pin', 'user') BEGIN
    INSERT INTO documents (kind, id, owner, document, version, created_at, expires_at)
    SELECT NEW.kind, NEW.id, NEW.owner, NEW.form, NEW.version, NEW.created_at, NEW.expires_at
    WHERE NOT EXISTS (SELECT 1 FROM documents WHERE kind = NEW.kind AND id = NEW.id);
END;
CREATE TRIGGER drawer_update AFTER UPDATE ON drawer
WHEN NEW.kind NOT IN ('login', 'passkey', 'client', 'consent', 'grant', 'account', 'pin', 'user') AND NEW.version <> OLD.version BEGIN
    UPDATE documents SET owner = NEW.owner, document = NEW.form, version = NEW.version, expires_at = NEW.expires_at
    WHERE kind = NEW.kind AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER drawer_delete AFTER DELETE ON drawer WHEN OLD.kind NOT IN ('login', 'passkey', 'client', 'consent', 'grant', 'account', 'pin', 'user') BEGIN
    DELETE FROM documents WHERE kind = OLD.kind AND id = OLD.id;
END;
CREATE TRIGGER documents_insert AFTER INSERT ON documents BEGIN
    INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
    SELECT NEW.kind, NEW.id, NEW.owner, NEW.document, NEW.version, NEW.created_at, NEW.expires_at
    WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = NEW.kind AND id = NEW.id);
END;
CREATE TRIGGER documents_update AFTER UPDATE ON documents WHEN NEW.version <> OLD.version BEGIN
    UPDATE drawer SET owner = NEW.owner, form = NEW.document, version = NEW.version, expires_at = NEW.expires_at
    WHERE kind = NEW.kind AND id = NEW.id AND version <> NEW.version;
END;
CREATE TRIGGER documents_delete AFTER DELETE ON documents BEGIN
    DELETE FROM drawer WHERE kind = OLD.kind AND id = OLD.id;
END;

-- A user of a node of the version before arrives here later than what belongs to them.
CREATE TRIGGER users_arrive AFTER INSERT ON users BEGIN
    INSERT INTO logins (id, subject, version, created_at, expires_at)
    SELECT
        d.id, d.owner, d.version, d.created_at, d.expires_at
    FROM drawer d WHERE json_valid(d.form)
        AND d.kind = 'login'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM logins WHERE id = d.id);
    INSERT INTO passkeys (id, subject, name, public_key, counter, version, created_at)
    SELECT
        d.id, d.owner, COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.name'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.public_key'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.counter'), 0), d.version, d.created_at
    FROM drawer d WHERE json_valid(d.form)
        AND d.kind = 'passkey'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM passkeys WHERE id = d.id);
    INSERT INTO consents (id, subject, client, scopes, project, version, created_at)
    SELECT
        d.id, d.owner, COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.client'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.project'), ''), d.version, d.created_at
    FROM drawer d WHERE json_valid(d.form)
        AND d.kind = 'consent'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM consents WHERE id = d.id);
    INSERT INTO grants (id, subject, client, scopes, project, generation, rotated_at, key_id, sealed_key, last_access, last_scopes, last_expires_at, last_project, version, created_at, expires_at)
    SELECT
        d.id, CASE WHEN json_extract(replace(d.form, '\u0000', '\ufffd'), '$.own') THEN NULL ELSE d.owner END,
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.client'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.scopes'), '[]'),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.project'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.generation'), 0),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.rotated_at'), 0),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.key_id'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.key'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.access'), ''),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.scopes'), '[]'),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.expires_at'), 0),
        COALESCE(json_extract(replace(d.form, '\u0000', '\ufffd'), '$.last.project'), ''), d.version,
        d.created_at, d.expires_at
    FROM drawer d WHERE json_valid(d.form)
        AND d.kind = 'grant'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM grants WHERE id = d.id);
END;

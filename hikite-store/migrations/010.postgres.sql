-- Generated once for migration 010; see 010.sql. First the rows that are there, then the triggers that keep `drawer`, which
-- nodes of the version before read and write, and the tables the same. A row goes across if the other side has another
-- version of it, so no trigger starts a circle.

-- PostgreSQL cannot store NUL, which JSON can spell. Text that is no JSON becomes NULL.
CREATE FUNCTION hikite_json(form TEXT) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CAST(replace(form, '\u0000', '\ufffd') AS json);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

INSERT INTO logins (id, subject, version, created_at, expires_at)
SELECT
    d.id, d.owner, d.version, d.created_at, d.expires_at
FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
    AND d.kind = 'login'
    AND EXISTS (SELECT 1 FROM users WHERE subject = d.owner)
    AND NOT EXISTS (SELECT 1 FROM logins WHERE id = d.id);
INSERT INTO passkeys (id, subject, name, public_key, counter, version, created_at)
SELECT
    d.id, d.owner, COALESCE(hikite_json(d.form) ->> 'name', ''),
    COALESCE(hikite_json(d.form) ->> 'public_key', ''),
    COALESCE(CAST(hikite_json(d.form) ->> 'counter' AS BIGINT), 0), d.version, d.created_at
FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
    AND d.kind = 'passkey'
    AND EXISTS (SELECT 1 FROM users WHERE subject = d.owner)
    AND NOT EXISTS (SELECT 1 FROM passkeys WHERE id = d.id);
INSERT INTO clients (id, name, origin, redirect_uris, approved, secret_hash, grant_id, looked_up_at, address, version, created_at, expires_at)
SELECT
    d.id, COALESCE(hikite_json(d.form) ->> 'name', ''), COALESCE(hikite_json(d.form) ->> 'origin', ''),
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'redirect_uris' AS TEXT), 'null'), '[]'),
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'approved' AS TEXT), 'null'), '[]'),
    COALESCE(hikite_json(d.form) ->> 'secret', ''), COALESCE(hikite_json(d.form) ->> 'grant', ''),
    COALESCE(CAST(hikite_json(d.form) ->> 'looked_up_at' AS BIGINT), 0),
    COALESCE(hikite_json(d.form) ->> 'from', ''), d.version, d.created_at, d.expires_at
FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
    AND d.kind = 'client'
    AND NOT EXISTS (SELECT 1 FROM clients WHERE id = d.id);
INSERT INTO consents (id, subject, client, scopes, project, version, created_at)
SELECT
    d.id, d.owner, COALESCE(hikite_json(d.form) ->> 'client', ''),
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'scopes' AS TEXT), 'null'), '[]'),
    COALESCE(hikite_json(d.form) ->> 'project', ''), d.version, d.created_at
FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
    AND d.kind = 'consent'
    AND EXISTS (SELECT 1 FROM users WHERE subject = d.owner)
    AND NOT EXISTS (SELECT 1 FROM consents WHERE id = d.id);
INSERT INTO grants (id, subject, client, scopes, project, generation, rotated_at, key_id, sealed_key, last_access, last_scopes, last_expires_at, last_project, version, created_at, expires_at)
SELECT
    d.id, CASE WHEN hikite_json(d.form) ->> 'own' = 'true' THEN NULL ELSE d.owner END,
    COALESCE(hikite_json(d.form) ->> 'client', ''),
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'scopes' AS TEXT), 'null'), '[]'),
    COALESCE(hikite_json(d.form) ->> 'project', ''),
    COALESCE(CAST(hikite_json(d.form) ->> 'generation' AS BIGINT), 0),
    COALESCE(CAST(hikite_json(d.form) ->> 'rotated_at' AS BIGINT), 0),
    COALESCE(hikite_json(d.form) ->> 'key_id', ''), COALESCE(hikite_json(d.form) ->> 'key', ''),
    COALESCE(hikite_json(d.form) #>> '{last,access}', ''),
    COALESCE(NULLIF(CAST(hikite_json(d.form) #> '{last,scopes}' AS TEXT), 'null'), '[]'),
    COALESCE(CAST(hikite_json(d.form) #>> '{last,expires_at}' AS BIGINT), 0),
    COALESCE(hikite_json(d.form) #>> '{last,project}', ''), d.version, d.created_at, d.expires_at
FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
    AND d.kind = 'grant'
    AND (hikite_json(d.form) ->> 'own' = 'true' OR EXISTS (SELECT 1 FROM users WHERE subject = d.owner))
    AND NOT EXISTS (SELECT 1 FROM grants WHERE id = d.id);
INSERT INTO accounts (id, subject, provider, name, status, problem, verified_at, is_default, shared, scopes, email, details, api, token_expires_at, last_refresh, permissions, version, created_at)
SELECT
    d.id, d.owner, COALESCE(hikite_json(d.form) ->> 'provider', ''),
    COALESCE(hikite_json(d.form) ->> 'name', ''), COALESCE(hikite_json(d.form) ->> 'state', 'connected'),
    COALESCE(hikite_json(d.form) ->> 'problem', ''),
    COALESCE(CAST(hikite_json(d.form) ->> 'verified_at' AS BIGINT), 0),
    CASE hikite_json(d.form) ->> 'default' WHEN 'true' THEN 1 ELSE 0 END,
    CASE hikite_json(d.form) ->> 'shared' WHEN 'true' THEN 1 ELSE 0 END,
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'scopes' AS TEXT), 'null'), '[]'),
    COALESCE(hikite_json(d.form) ->> 'email', ''),
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'details' AS TEXT), 'null'), '{}'),
    COALESCE(hikite_json(d.form) ->> 'api', ''),
    COALESCE(CAST(hikite_json(d.form) ->> 'expires_at' AS BIGINT), 0),
    COALESCE(CAST(hikite_json(d.form) ->> 'last_refresh' AS BIGINT), 0),
    COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'permissions' AS TEXT), 'null'), '{}'), d.version, d.created_at
FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
    AND d.kind = 'account'
    AND NOT EXISTS (SELECT 1 FROM accounts WHERE id = d.id);
INSERT INTO pins (id, module, hash, blocked, pinned_at, version, created_at)
SELECT
    d.id, d.owner, COALESCE(hikite_json(d.form) ->> 'hash', ''),
    CASE WHEN COALESCE(hikite_json(d.form) ->> 'hash', '') = '' OR COALESCE(hikite_json(d.form) ->> 'blocked', 'false') <> 'false' THEN 1 ELSE 0 END,
    COALESCE(CAST(hikite_json(d.form) ->> 'at' AS BIGINT), d.created_at), d.version, d.created_at
FROM drawer d WHERE d.kind = 'pin'
    AND NOT EXISTS (SELECT 1 FROM pins WHERE id = d.id);
INSERT INTO documents (kind, id, owner, document, version, created_at, expires_at)
SELECT kind, id, owner, form, version, created_at, expires_at FROM drawer WHERE kind NOT IN ('login', 'passkey', 'client', 'consent', 'grant', 'account', 'pin', 'user');

-- Both sides take this lock first, so that a node of each version never waits for a row of the other.
CREATE FUNCTION hikite_drawer_lock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7452347524);
    RETURN NULL;
END $$;
CREATE TRIGGER drawer_lock BEFORE INSERT OR UPDATE OR DELETE ON drawer FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER documents_lock BEFORE INSERT OR UPDATE OR DELETE ON documents FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER logins_lock BEFORE INSERT OR UPDATE OR DELETE ON logins FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER passkeys_lock BEFORE INSERT OR UPDATE OR DELETE ON passkeys FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER clients_lock BEFORE INSERT OR UPDATE OR DELETE ON clients FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER consents_lock BEFORE INSERT OR UPDATE OR DELETE ON consents FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER grants_lock BEFORE INSERT OR UPDATE OR DELETE ON grants FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER accounts_lock BEFORE INSERT OR UPDATE OR DELETE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();
CREATE TRIGGER pins_lock BEFORE INSERT OR UPDATE OR DELETE ON pins FOR EACH STATEMENT EXECUTE FUNCTION hikite_drawer_lock();

CREATE FUNCTION hikite_drawer_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CASE NEW.kind
    WHEN 'user' THEN NULL;
    WHEN 'login' THEN
        INSERT INTO logins (id, subject, version, created_at, expires_at)
        SELECT
            NEW.id, NEW.owner, NEW.version, NEW.created_at, NEW.expires_at
        WHERE hikite_json(NEW.form) IS NOT NULL
            AND EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner)
            AND NOT EXISTS (SELECT 1 FROM logins WHERE id = NEW.id);
    WHEN 'passkey' THEN
        INSERT INTO passkeys (id, subject, name, public_key, counter, version, created_at)
        SELECT
            NEW.id, NEW.owner, COALESCE(hikite_json(NEW.form) ->> 'name', ''),
            COALESCE(hikite_json(NEW.form) ->> 'public_key', ''),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'counter' AS BIGINT), 0), NEW.version, NEW.created_at
        WHERE hikite_json(NEW.form) IS NOT NULL
            AND EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner)
            AND NOT EXISTS (SELECT 1 FROM passkeys WHERE id = NEW.id);
    WHEN 'client' THEN
        INSERT INTO clients (id, name, origin, redirect_uris, approved, secret_hash, grant_id, looked_up_at, address, version, created_at, expires_at)
        SELECT
            NEW.id, COALESCE(hikite_json(NEW.form) ->> 'name', ''),
            COALESCE(hikite_json(NEW.form) ->> 'origin', ''),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'redirect_uris' AS TEXT), 'null'), '[]'),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'approved' AS TEXT), 'null'), '[]'),
            COALESCE(hikite_json(NEW.form) ->> 'secret', ''), COALESCE(hikite_json(NEW.form) ->> 'grant', ''),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'looked_up_at' AS BIGINT), 0),
            COALESCE(hikite_json(NEW.form) ->> 'from', ''), NEW.version, NEW.created_at, NEW.expires_at
        WHERE hikite_json(NEW.form) IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM clients WHERE id = NEW.id);
    WHEN 'consent' THEN
        INSERT INTO consents (id, subject, client, scopes, project, version, created_at)
        SELECT
            NEW.id, NEW.owner, COALESCE(hikite_json(NEW.form) ->> 'client', ''),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'scopes' AS TEXT), 'null'), '[]'),
            COALESCE(hikite_json(NEW.form) ->> 'project', ''), NEW.version, NEW.created_at
        WHERE hikite_json(NEW.form) IS NOT NULL
            AND EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner)
            AND NOT EXISTS (SELECT 1 FROM consents WHERE id = NEW.id);
    WHEN 'grant' THEN
        INSERT INTO grants (id, subject, client, scopes, project, generation, rotated_at, key_id, sealed_key, last_access, last_scopes, last_expires_at, last_project, version, created_at, expires_at)
        SELECT
            NEW.id, CASE WHEN hikite_json(NEW.form) ->> 'own' = 'true' THEN NULL ELSE NEW.owner END,
            COALESCE(hikite_json(NEW.form) ->> 'client', ''),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'scopes' AS TEXT), 'null'), '[]'),
            COALESCE(hikite_json(NEW.form) ->> 'project', ''),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'generation' AS BIGINT), 0),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'rotated_at' AS BIGINT), 0),
            COALESCE(hikite_json(NEW.form) ->> 'key_id', ''), COALESCE(hikite_json(NEW.form) ->> 'key', ''),
            COALESCE(hikite_json(NEW.form) #>> '{last,access}', ''),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) #> '{last,scopes}' AS TEXT), 'null'), '[]'),
            COALESCE(CAST(hikite_json(NEW.form) #>> '{last,expires_at}' AS BIGINT), 0),
            COALESCE(hikite_json(NEW.form) #>> '{last,project}', ''), NEW.version, NEW.created_at,
            NEW.expires_at
        WHERE hikite_json(NEW.form) IS NOT NULL
            AND (hikite_json(NEW.form) ->> 'own' = 'true' OR EXISTS (SELECT 1 FROM users WHERE subject = NEW.owner))
            AND NOT EXISTS (SELECT 1 FROM grants WHERE id = NEW.id);
    WHEN 'account' THEN
        INSERT INTO accounts (id, subject, provider, name, status, problem, verified_at, is_default, shared, scopes, email, details, api, token_expires_at, last_refresh, permissions, version, created_at)
        SELECT
            NEW.id, NEW.owner, COALESCE(hikite_json(NEW.form) ->> 'provider', ''),
            COALESCE(hikite_json(NEW.form) ->> 'name', ''),
            COALESCE(hikite_json(NEW.form) ->> 'state', 'connected'),
            COALESCE(hikite_json(NEW.form) ->> 'problem', ''),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'verified_at' AS BIGINT), 0),
            CASE hikite_json(NEW.form) ->> 'default' WHEN 'true' THEN 1 ELSE 0 END,
            CASE hikite_json(NEW.form) ->> 'shared' WHEN 'true' THEN 1 ELSE 0 END,
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'scopes' AS TEXT), 'null'), '[]'),
            COALESCE(hikite_json(NEW.form) ->> 'email', ''),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'details' AS TEXT), 'null'), '{}'),
            COALESCE(hikite_json(NEW.form) ->> 'api', ''),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'expires_at' AS BIGINT), 0),
            COALESCE(CAST(hikite_json(NEW.form) ->> 'last_refresh' AS BIGINT), 0),
            COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'permissions' AS TEXT), 'null'), '{}'), NEW.version,
            NEW.created_at
        WHERE hikite_json(NEW.form) IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM accounts WHERE id = NEW.id);
    WHEN 'pin' THEN
        INSERT INTO pins (id, module, hash, blocked, pinned_at, version, created_at)
        SELECT
            NEW.id, NEW.owner, COALESCE(hikite_json(NEW.form) ->> 'hash', ''),
            CASE WHEN COALESCE(hikite_json(NEW.form) ->> 'hash', '') = '' OR COALESCE(hikite_json(NEW.form) ->> 'blocked', 'false') <> 'false' THEN 1 ELSE 0 END,
            COALESCE(CAST(hikite_json(NEW.form) ->> 'at' AS BIGINT), NEW.created_at), NEW.version,
            NEW.created_at
        WHERE NOT EXISTS (SELECT 1 FROM pins WHERE id = NEW.id);
    ELSE
        INSERT INTO documents (kind, id, owner, document, version, created_at, expires_at)
        SELECT NEW.kind, NEW.id, NEW.owner, NEW.form, NEW.version, NEW.created_at, NEW.expires_at
        WHERE NOT EXISTS (SELECT 1 FROM documents WHERE kind = NEW.kind AND id = NEW.id);
    END CASE;
    RETURN NULL;
END $$;
CREATE FUNCTION hikite_drawer_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CASE NEW.kind
    WHEN 'user' THEN NULL;
    WHEN 'login' THEN
        UPDATE logins SET
            subject = NEW.owner, version = NEW.version, expires_at = NEW.expires_at
        WHERE id = NEW.id AND version <> NEW.version AND hikite_json(NEW.form) IS NOT NULL;
    WHEN 'passkey' THEN
        UPDATE passkeys SET
            subject = NEW.owner, name = COALESCE(hikite_json(NEW.form) ->> 'name', ''),
            public_key = COALESCE(hikite_json(NEW.form) ->> 'public_key', ''),
            counter = COALESCE(CAST(hikite_json(NEW.form) ->> 'counter' AS BIGINT), 0), version = NEW.version
        WHERE id = NEW.id AND version <> NEW.version AND hikite_json(NEW.form) IS NOT NULL;
    WHEN 'client' THEN
        UPDATE clients SET
            name = COALESCE(hikite_json(NEW.form) ->> 'name', ''),
            origin = COALESCE(hikite_json(NEW.form) ->> 'origin', ''),
            redirect_uris = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'redirect_uris' AS TEXT), 'null'), '[]'),
            approved = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'approved' AS TEXT), 'null'), '[]'),
            secret_hash = COALESCE(hikite_json(NEW.form) ->> 'secret', ''),
            grant_id = COALESCE(hikite_json(NEW.form) ->> 'grant', ''),
            looked_up_at = COALESCE(CAST(hikite_json(NEW.form) ->> 'looked_up_at' AS BIGINT), 0),
            address = COALESCE(hikite_json(NEW.form) ->> 'from', ''), version = NEW.version,
            expires_at = NEW.expires_at
        WHERE id = NEW.id AND version <> NEW.version AND hikite_json(NEW.form) IS NOT NULL;
    WHEN 'consent' THEN
        UPDATE consents SET
            subject = NEW.owner, client = COALESCE(hikite_json(NEW.form) ->> 'client', ''),
            scopes = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'scopes' AS TEXT), 'null'), '[]'),
            project = COALESCE(hikite_json(NEW.form) ->> 'project', ''), version = NEW.version
        WHERE id = NEW.id AND version <> NEW.version AND hikite_json(NEW.form) IS NOT NULL;
    WHEN 'grant' THEN
        UPDATE grants SET
            subject = CASE WHEN hikite_json(NEW.form) ->> 'own' = 'true' THEN NULL ELSE NEW.owner END,
            client = COALESCE(hikite_json(NEW.form) ->> 'client', ''),
            scopes = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'scopes' AS TEXT), 'null'), '[]'),
            project = COALESCE(hikite_json(NEW.form) ->> 'project', ''),
            generation = COALESCE(CAST(hikite_json(NEW.form) ->> 'generation' AS BIGINT), 0),
            rotated_at = COALESCE(CAST(hikite_json(NEW.form) ->> 'rotated_at' AS BIGINT), 0),
            key_id = COALESCE(hikite_json(NEW.form) ->> 'key_id', ''),
            sealed_key = COALESCE(hikite_json(NEW.form) ->> 'key', ''),
            last_access = COALESCE(hikite_json(NEW.form) #>> '{last,access}', ''),
            last_scopes = COALESCE(NULLIF(CAST(hikite_json(NEW.form) #> '{last,scopes}' AS TEXT), 'null'), '[]'),
            last_expires_at = COALESCE(CAST(hikite_json(NEW.form) #>> '{last,expires_at}' AS BIGINT), 0),
            last_project = COALESCE(hikite_json(NEW.form) #>> '{last,project}', ''), version = NEW.version,
            expires_at = NEW.expires_at
        WHERE id = NEW.id AND version <> NEW.version AND hikite_json(NEW.form) IS NOT NULL;
    WHEN 'account' THEN
        UPDATE accounts SET
            subject = NEW.owner, provider = COALESCE(hikite_json(NEW.form) ->> 'provider', ''),
            name = COALESCE(hikite_json(NEW.form) ->> 'name', ''),
            status = COALESCE(hikite_json(NEW.form) ->> 'state', 'connected'),
            problem = COALESCE(hikite_json(NEW.form) ->> 'problem', ''),
            verified_at = COALESCE(CAST(hikite_json(NEW.form) ->> 'verified_at' AS BIGINT), 0),
            is_default = CASE hikite_json(NEW.form) ->> 'default' WHEN 'true' THEN 1 ELSE 0 END,
            shared = CASE hikite_json(NEW.form) ->> 'shared' WHEN 'true' THEN 1 ELSE 0 END,
            scopes = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'scopes' AS TEXT), 'null'), '[]'),
            email = COALESCE(hikite_json(NEW.form) ->> 'email', ''),
            details = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'details' AS TEXT), 'null'), '{}'),
            api = COALESCE(hikite_json(NEW.form) ->> 'api', ''),
            token_expires_at = COALESCE(CAST(hikite_json(NEW.form) ->> 'expires_at' AS BIGINT), 0),
            last_refresh = COALESCE(CAST(hikite_json(NEW.form) ->> 'last_refresh' AS BIGINT), 0),
            permissions = COALESCE(NULLIF(CAST(hikite_json(NEW.form) -> 'permissions' AS TEXT), 'null'), '{}'),
            version = NEW.version
        WHERE id = NEW.id AND version <> NEW.version AND hikite_json(NEW.form) IS NOT NULL;
    WHEN 'pin' THEN
        UPDATE pins SET
            module = NEW.owner, hash = COALESCE(hikite_json(NEW.form) ->> 'hash', ''),
            blocked = CASE WHEN COALESCE(hikite_json(NEW.form) ->> 'hash', '') = '' OR COALESCE(hikite_json(NEW.form) ->> 'blocked', 'false') <> 'false' THEN 1 ELSE 0 END,
            pinned_at = COALESCE(CAST(hikite_json(NEW.form) ->> 'at' AS BIGINT), NEW.created_at),
            version = NEW.version
        WHERE id = NEW.id AND version <> NEW.version;
    ELSE
        UPDATE documents SET owner = NEW.owner, document = NEW.form, version = NEW.version, expires_at = NEW.expires_at
        WHERE kind = NEW.kind AND id = NEW.id AND version <> NEW.version;
    END CASE;
    RETURN NULL;
END $$;
CREATE FUNCTION hikite_drawer_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CASE OLD.kind
    WHEN 'user' THEN NULL;
    WHEN 'login' THEN DELETE FROM logins WHERE id = OLD.id;
    WHEN 'passkey' THEN DELETE FROM passkeys WHERE id = OLD.id;
    WHEN 'client' THEN DELETE FROM clients WHERE id = OLD.id;
    WHEN 'consent' THEN DELETE FROM consents WHERE id = OLD.id;
    WHEN 'grant' THEN DELETE FROM grants WHERE id = OLD.id;
    WHEN 'account' THEN DELETE FROM accounts WHERE id = OLD.id;
    WHEN 'pin' THEN DELETE FROM pins WHERE id = OLD.id;
    ELSE DELETE FROM documents WHERE kind = OLD.kind AND id = OLD.id;
    END CASE;
    RETURN NULL;
END $$;
CREATE TRIGGER drawer_insert AFTER INSERT ON drawer FOR EACH ROW EXECUTE FUNCTION hikite_drawer_insert();
CREATE TRIGGER drawer_update AFTER UPDATE ON drawer FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_drawer_update();
CREATE TRIGGER drawer_delete AFTER DELETE ON drawer FOR EACH ROW EXECUTE FUNCTION hikite_drawer_delete();

CREATE FUNCTION hikite_logins_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'login', NEW.id, NEW.subject,
            '{}',
            NEW.version, NEW.created_at, NEW.expires_at
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'login' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = NEW.subject, version = NEW.version, expires_at = NEW.expires_at, form =
            '{}'
        WHERE kind = 'login' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'login' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER logins_mirror AFTER INSERT OR DELETE ON logins FOR EACH ROW EXECUTE FUNCTION hikite_logins_mirror();
CREATE TRIGGER logins_mirror_update AFTER UPDATE ON logins FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_logins_mirror();

CREATE FUNCTION hikite_passkeys_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'passkey', NEW.id, NEW.subject,
            CAST(json_build_object(
            'id', NEW.id, 'name', NEW.name, 'public_key', NEW.public_key, 'counter', NEW.counter) AS TEXT),
            NEW.version, NEW.created_at, 0
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'passkey' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = NEW.subject, version = NEW.version, form =
            CAST(json_build_object(
            'id', NEW.id, 'name', NEW.name, 'public_key', NEW.public_key, 'counter', NEW.counter) AS TEXT)
        WHERE kind = 'passkey' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'passkey' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER passkeys_mirror AFTER INSERT OR DELETE ON passkeys FOR EACH ROW EXECUTE FUNCTION hikite_passkeys_mirror();
CREATE TRIGGER passkeys_mirror_update AFTER UPDATE ON passkeys FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_passkeys_mirror();

CREATE FUNCTION hikite_clients_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'client', NEW.id, '',
            CAST(json_build_object(
            'name', NEW.name, 'origin', NEW.origin, 'redirect_uris', CAST(NEW.redirect_uris AS json),
            'approved', CAST(NEW.approved AS json), 'secret', NULLIF(NEW.secret_hash, ''),
            'grant', NULLIF(NEW.grant_id, ''), 'looked_up_at', NEW.looked_up_at, 'from', NEW.address) AS TEXT),
            NEW.version, NEW.created_at, NEW.expires_at
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'client' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = '', version = NEW.version, expires_at = NEW.expires_at, form =
            CAST(json_build_object(
            'name', NEW.name, 'origin', NEW.origin, 'redirect_uris', CAST(NEW.redirect_uris AS json),
            'approved', CAST(NEW.approved AS json), 'secret', NULLIF(NEW.secret_hash, ''),
            'grant', NULLIF(NEW.grant_id, ''), 'looked_up_at', NEW.looked_up_at, 'from', NEW.address) AS TEXT)
        WHERE kind = 'client' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'client' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER clients_mirror AFTER INSERT OR DELETE ON clients FOR EACH ROW EXECUTE FUNCTION hikite_clients_mirror();
CREATE TRIGGER clients_mirror_update AFTER UPDATE ON clients FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_clients_mirror();

CREATE FUNCTION hikite_consents_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'consent', NEW.id, NEW.subject,
            CAST(json_build_object(
            'client', NEW.client, 'scopes', CAST(NEW.scopes AS json), 'project', NULLIF(NEW.project, '')) AS TEXT),
            NEW.version, NEW.created_at, 0
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'consent' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = NEW.subject, version = NEW.version, form =
            CAST(json_build_object(
            'client', NEW.client, 'scopes', CAST(NEW.scopes AS json), 'project', NULLIF(NEW.project, '')) AS TEXT)
        WHERE kind = 'consent' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'consent' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER consents_mirror AFTER INSERT OR DELETE ON consents FOR EACH ROW EXECUTE FUNCTION hikite_consents_mirror();
CREATE TRIGGER consents_mirror_update AFTER UPDATE ON consents FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_consents_mirror();

CREATE FUNCTION hikite_grants_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'grant', NEW.id, COALESCE(NEW.subject, 'client:' || NEW.client),
            CAST(json_build_object(
            'own', NEW.subject IS NULL, 'client', NEW.client, 'scopes', CAST(NEW.scopes AS json),
            'project', NULLIF(NEW.project, ''), 'generation', NEW.generation, 'rotated_at', NEW.rotated_at,
            'key_id', NEW.key_id, 'key', NEW.sealed_key,
            'last', CASE WHEN NEW.last_access = '' THEN NULL ELSE json_build_object('access', NEW.last_access, 'scopes', CAST(NEW.last_scopes AS json), 'expires_at', NEW.last_expires_at, 'project', NULLIF(NEW.last_project, '')) END) AS TEXT),
            NEW.version, NEW.created_at, NEW.expires_at
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'grant' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = COALESCE(NEW.subject, 'client:' || NEW.client), version = NEW.version, expires_at = NEW.expires_at, form =
            CAST(json_build_object(
            'own', NEW.subject IS NULL, 'client', NEW.client, 'scopes', CAST(NEW.scopes AS json),
            'project', NULLIF(NEW.project, ''), 'generation', NEW.generation, 'rotated_at', NEW.rotated_at,
            'key_id', NEW.key_id, 'key', NEW.sealed_key,
            'last', CASE WHEN NEW.last_access = '' THEN NULL ELSE json_build_object('access', NEW.last_access, 'scopes', CAST(NEW.last_scopes AS json), 'expires_at', NEW.last_expires_at, 'project', NULLIF(NEW.last_project, '')) END) AS TEXT)
        WHERE kind = 'grant' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'grant' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER grants_mirror AFTER INSERT OR DELETE ON grants FOR EACH ROW EXECUTE FUNCTION hikite_grants_mirror();
CREATE TRIGGER grants_mirror_update AFTER UPDATE ON grants FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_grants_mirror();

CREATE FUNCTION hikite_accounts_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'account', NEW.id, NEW.subject,
            CAST(json_build_object(
            'provider', NEW.provider, 'name', NEW.name, 'state', NEW.status, 'problem', NULLIF(NEW.problem, ''),
            'verified_at', NEW.verified_at, 'default', NEW.is_default <> 0, 'shared', NEW.shared <> 0,
            'scopes', CAST(NEW.scopes AS json), 'email', NULLIF(NEW.email, ''),
            'details', CAST(NEW.details AS json), 'api', NULLIF(NEW.api, ''),
            'expires_at', NEW.token_expires_at, 'last_refresh', NEW.last_refresh,
            'permissions', CAST(NEW.permissions AS json)) AS TEXT),
            NEW.version, NEW.created_at, 0
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'account' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = NEW.subject, version = NEW.version, form =
            CAST(json_build_object(
            'provider', NEW.provider, 'name', NEW.name, 'state', NEW.status, 'problem', NULLIF(NEW.problem, ''),
            'verified_at', NEW.verified_at, 'default', NEW.is_default <> 0, 'shared', NEW.shared <> 0,
            'scopes', CAST(NEW.scopes AS json), 'email', NULLIF(NEW.email, ''),
            'details', CAST(NEW.details AS json), 'api', NULLIF(NEW.api, ''),
            'expires_at', NEW.token_expires_at, 'last_refresh', NEW.last_refresh,
            'permissions', CAST(NEW.permissions AS json)) AS TEXT)
        WHERE kind = 'account' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'account' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER accounts_mirror AFTER INSERT OR DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION hikite_accounts_mirror();
CREATE TRIGGER accounts_mirror_update AFTER UPDATE ON accounts FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_accounts_mirror();

CREATE FUNCTION hikite_pins_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT 'pin', NEW.id, NEW.module,
            CAST(json_build_object(
            'hash', NEW.hash, 'blocked', NEW.blocked <> 0, 'at', NEW.pinned_at) AS TEXT),
            NEW.version, NEW.created_at, 0
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = 'pin' AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = NEW.module, version = NEW.version, form =
            CAST(json_build_object(
            'hash', NEW.hash, 'blocked', NEW.blocked <> 0, 'at', NEW.pinned_at) AS TEXT)
        WHERE kind = 'pin' AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = 'pin' AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER pins_mirror AFTER INSERT OR DELETE ON pins FOR EACH ROW EXECUTE FUNCTION hikite_pins_mirror();
CREATE TRIGGER pins_mirror_update AFTER UPDATE ON pins FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_pins_mirror();

CREATE FUNCTION hikite_documents_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at)
        SELECT NEW.kind, NEW.id, NEW.owner, NEW.document, NEW.version, NEW.created_at, NEW.expires_at
        WHERE NOT EXISTS (SELECT 1 FROM drawer WHERE kind = NEW.kind AND id = NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE drawer SET owner = NEW.owner, form = NEW.document, version = NEW.version, expires_at = NEW.expires_at
        WHERE kind = NEW.kind AND id = NEW.id AND version <> NEW.version;
    ELSE
        DELETE FROM drawer WHERE kind = OLD.kind AND id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER documents_mirror AFTER INSERT OR DELETE ON documents FOR EACH ROW EXECUTE FUNCTION hikite_documents_mirror();
CREATE TRIGGER documents_mirror_update AFTER UPDATE ON documents FOR EACH ROW WHEN (NEW.version <> OLD.version)
    EXECUTE FUNCTION hikite_documents_mirror();

-- A user of a node of the version before arrives here later than what belongs to them.
CREATE FUNCTION hikite_users_arrive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO logins (id, subject, version, created_at, expires_at)
    SELECT
        d.id, d.owner, d.version, d.created_at, d.expires_at
    FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
        AND d.kind = 'login'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM logins WHERE id = d.id);
    INSERT INTO passkeys (id, subject, name, public_key, counter, version, created_at)
    SELECT
        d.id, d.owner, COALESCE(hikite_json(d.form) ->> 'name', ''),
        COALESCE(hikite_json(d.form) ->> 'public_key', ''),
        COALESCE(CAST(hikite_json(d.form) ->> 'counter' AS BIGINT), 0), d.version, d.created_at
    FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
        AND d.kind = 'passkey'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM passkeys WHERE id = d.id);
    INSERT INTO consents (id, subject, client, scopes, project, version, created_at)
    SELECT
        d.id, d.owner, COALESCE(hikite_json(d.form) ->> 'client', ''),
        COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'scopes' AS TEXT), 'null'), '[]'),
        COALESCE(hikite_json(d.form) ->> 'project', ''), d.version, d.created_at
    FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
        AND d.kind = 'consent'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM consents WHERE id = d.id);
    INSERT INTO grants (id, subject, client, scopes, project, generation, rotated_at, key_id, sealed_key, last_access, last_scopes, last_expires_at, last_project, version, created_at, expires_at)
    SELECT
        d.id, CASE WHEN hikite_json(d.form) ->> 'own' = 'true' THEN NULL ELSE d.owner END,
        COALESCE(hikite_json(d.form) ->> 'client', ''),
        COALESCE(NULLIF(CAST(hikite_json(d.form) -> 'scopes' AS TEXT), 'null'), '[]'),
        COALESCE(hikite_json(d.form) ->> 'project', ''),
        COALESCE(CAST(hikite_json(d.form) ->> 'generation' AS BIGINT), 0),
        COALESCE(CAST(hikite_json(d.form) ->> 'rotated_at' AS BIGINT), 0),
        COALESCE(hikite_json(d.form) ->> 'key_id', ''), COALESCE(hikite_json(d.form) ->> 'key', ''),
        COALESCE(hikite_json(d.form) #>> '{last,access}', ''),
        COALESCE(NULLIF(CAST(hikite_json(d.form) #> '{last,scopes}' AS TEXT), 'null'), '[]'),
        COALESCE(CAST(hikite_json(d.form) #>> '{last,expires_at}' AS BIGINT), 0),
        COALESCE(hikite_json(d.form) #>> '{last,project}', ''), d.version, d.created_at, d.expires_at
    FROM drawer d WHERE hikite_json(d.form) IS NOT NULL
        AND d.kind = 'grant'
        AND d.owner = NEW.subject
        AND NOT EXISTS (SELECT 1 FROM grants WHERE id = d.id);
    RETURN NULL;
END $$;
CREATE TRIGGER users_arrive AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION hikite_users_arrive();

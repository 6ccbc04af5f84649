CREATE TRIGGER audit_kept BEFORE DELETE ON audit
WHEN OLD.seq > COALESCE((SELECT seq FROM audit_end WHERE name = 'trimmed'), 0)
BEGIN
    SELECT RAISE(ABORT, 'a record of the audit is deleted only after a trim record covers it');
END;

CREATE OR REPLACE FUNCTION hikite_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.seq > COALESCE((SELECT seq FROM audit_end WHERE name = 'trimmed'), 0) THEN
        RAISE EXCEPTION 'a record of the audit is deleted only after a trim record covers it';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION hikite_audit_kept();

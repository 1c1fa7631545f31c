INSERT INTO workflow_definitions (tenant_id, name, version, definition, changed_at, changed_by)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::text[])
ON CONFLICT ON CONSTRAINT workflow_definitions_one_row DO UPDATE SET
    version = excluded.version,
    definition = excluded.definition,
    changed_at = excluded.changed_at,
    changed_by = excluded.changed_by

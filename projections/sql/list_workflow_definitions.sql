-- Those that are there, by name.
SELECT definition, version FROM workflow_definitions WHERE tenant_id = $1 AND definition IS NOT NULL ORDER BY name

SELECT * FROM jobs WHERE batch_id = $1 ORDER BY item

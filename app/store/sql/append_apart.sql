-- The same batch, each append judged by itself.
SELECT stored_position, stored_at, refused FROM tracon_append_apart($1, $2, $3, $4, $5, $6, $7, $8, $9)

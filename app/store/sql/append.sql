-- A batch of appends, all of them or none.
SELECT positions, stamp FROM tracon_append($1, $2, $3, $4, $5, $6, $7, $8, $9)

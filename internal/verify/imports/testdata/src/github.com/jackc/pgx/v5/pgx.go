package pgx

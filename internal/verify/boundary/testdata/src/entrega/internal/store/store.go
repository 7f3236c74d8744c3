package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// InTx is the one door.
func InTx(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	return fn(tx)
}

package webhooks

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

type beginner interface {
	Begin(context.Context) (pgx.Tx, error)
}

type parser struct{}

func (parser) Begin() error { return nil }

func begin(ctx context.Context, conn *pgx.Conn, tx pgx.Tx, b beginner, db *sql.DB) {
	conn.Begin(ctx)               // want `boundary/begin: only internal/store begins transactions, and Begin does; use store.InTx, or take the caller's tx as a parameter`
	conn.BeginTx(ctx, 0)          // want `boundary/begin: .* BeginTx does`
	tx.Begin(ctx)                 // want `boundary/begin`
	b.Begin(ctx)                  // want `boundary/begin`
	db.BeginTx(ctx, nil)          // want `boundary/begin`
	pgx.BeginFunc(ctx, conn, nil) // want `boundary/begin: .* BeginFunc does`
	start := conn.Begin           // want `boundary/begin`
	_, _ = start(ctx)
	conn.Exec(ctx, " begin isolation level serializable") // want `boundary/begin: .* this statement does`
	tx.Exec(ctx, "START TRANSACTION")                     // want `boundary/begin: .* this statement does`

	store.InTx(ctx, conn, nil)
	parser{}.Begin()
	tx.Exec(ctx, "DO $$ BEGIN PERFORM 1; END $$")
	tx.Exec(ctx, "UPDATE beginnings SET begin = $1", "begin")
}

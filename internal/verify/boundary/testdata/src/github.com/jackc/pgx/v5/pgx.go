// Package pgx stands in for the library of that name.
package pgx

import "context"

// Tx is a transaction.
type Tx interface {
	Begin(context.Context) (Tx, error)
	Exec(ctx context.Context, sql string, args ...any) error
}

// Conn is a connection.
type Conn struct{}

// Begin starts a transaction.
func (*Conn) Begin(context.Context) (Tx, error) { return nil, nil }

// BeginTx starts a transaction.
func (*Conn) BeginTx(context.Context, int) (Tx, error) { return nil, nil }

// Exec runs sql.
func (*Conn) Exec(ctx context.Context, sql string, args ...any) error { return nil }

// BeginFunc calls fn in a transaction.
func BeginFunc(ctx context.Context, conn *Conn, fn func(Tx) error) error { return fn(nil) }

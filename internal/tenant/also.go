package tenant

import "github.com/jackc/pgx/v5"

// AlsoTx is what a caller wants done in the same transaction as a change, such as a mail about it: both commit or neither. It is
// told what was changed.
type AlsoTx[T any] func(tx pgx.Tx, changed T) error

func allTx[T any](tx pgx.Tx, changed T, also []AlsoTx[T]) error {
	for _, do := range also {
		if err := do(tx, changed); err != nil {
			return err
		}
	}
	return nil
}

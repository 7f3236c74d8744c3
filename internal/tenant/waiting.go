package tenant

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// ListWaiting lists the users who have not shown yet that their address is theirs, the newest first, up to limit. It is for
// admins only.
func ListWaiting(ctx context.Context, db store.DB, actor Actor, limit int) ([]User, error) {
	if err := actor.Require(PermAdmin); err != nil {
		return nil, err
	}
	// Ids are made in the order of time.
	rows, err := db.Query(ctx, `select `+userColumns+` from users where email_confirmed_at is null order by id desc limit @limit`,
		pgx.StrictNamedArgs{"limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list who waits for a confirmation: %w", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByName[User])
	if err != nil {
		return nil, fmt.Errorf("list who waits for a confirmation: %w", err)
	}
	return users, nil
}

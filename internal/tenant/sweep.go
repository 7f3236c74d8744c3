package tenant

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// linkTrace is how long a spent or expired link stays, so that its page can still be explained to who asks.
const linkTrace = 7 * 24 * time.Hour

// throttleTrace is longer than any rule's window.
const throttleTrace = 24 * time.Hour

// Sweep deletes sessions, one-time links and throttle counts that can no longer matter, and returns how many. A periodic
// job calls it.
func Sweep(ctx context.Context, db store.DB, now time.Time) (int64, error) {
	var swept int64
	for _, s := range []struct {
		sql    string
		before time.Time
	}{
		{`delete from sessions where expiry < @before`, now},
		{`delete from one_time_links where expires_at < @before`, now.Add(-linkTrace)},
		// A log-in locks two of these rows in its own order, so this one waits for none.
		{`delete from login_throttle where key in (
			select key from login_throttle where greatest(window_start, blocked_until) < @before for update skip locked
		)`, now.Add(-throttleTrace)},
	} {
		tag, err := db.Exec(ctx, s.sql, pgx.StrictNamedArgs{"before": s.before})
		if err != nil {
			return swept, fmt.Errorf("sweep log-ins: %w", err)
		}
		swept += tag.RowsAffected()
	}
	return swept, nil
}

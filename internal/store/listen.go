package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// listenPing is how long a listener waits in silence before it asks whether the other end is still there. A network
// that drops packets says nothing by itself.
const listenPing = 30 * time.Second

// Listen hands each notification on channel to handle, one at a time in the order of their commits, over a connection of
// its own beside the pool. It calls handle once with "" when it begins to listen, because whatever was notified before is
// lost: read that as "something may have changed".
//
// It returns ctx's error when ctx ends, else the reason why the connection was lost; the caller's loop decides when to
// listen again. handle must not block for long: notifications queue up in the server meanwhile.
func Listen(ctx context.Context, pool *pgxpool.Pool, channel string, handle func(payload string)) error {
	conn, err := dedicatedConn(ctx, pool, nil)
	if err != nil {
		return fmt.Errorf("connect to listen on %s: %w", channel, err)
	}
	defer closeConn(ctx, conn)

	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return fmt.Errorf("listen on %s: %w", channel, err)
	}
	handle("")

	for {
		payload, quiet, err := nextNotification(ctx, conn)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("wait for a notification on %s: %w", channel, err)
		case !quiet:
			handle(payload)
		}
	}
}

// nextNotification waits up to listenPing for a notification. Quiet says that none came and the server still answers.
func nextNotification(ctx context.Context, conn *pgx.Conn) (payload string, quiet bool, err error) {
	wait, cancel := context.WithTimeout(ctx, listenPing)
	defer cancel()
	notification, err := conn.WaitForNotification(wait)
	if err == nil {
		return notification.Payload, false, nil
	}
	if ctx.Err() != nil || !pgconn.Timeout(err) {
		return "", false, err
	}

	ping, cancel := context.WithTimeout(ctx, listenPing)
	defer cancel()
	return "", true, conn.Ping(ping)
}

// dedicatedConn opens a connection to the pool's database that the pool does not count, with extra session settings.
func dedicatedConn(ctx context.Context, pool *pgxpool.Pool, params map[string]string) (*pgx.Conn, error) {
	config := pool.Config().ConnConfig
	for key, value := range params {
		config.RuntimeParams[key] = value
	}
	return pgx.ConnectConfig(ctx, config)
}

// closeConn says goodbye even when ctx has ended, within a few seconds.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // A goodbye that fails leaves nothing to mend: the server ends the session by itself.
}

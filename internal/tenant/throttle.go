package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// ThrottledError means that too much was tried. It reads the same whether or not the account exists.
type ThrottledError struct {
	// RetryAfter is how long to wait, above zero.
	RetryAfter time.Duration
}

func (e *ThrottledError) Error() string {
	minutes := (e.RetryAfter + time.Minute - 1) / time.Minute
	if minutes <= 1 {
		return "Too many attempts. Try again in 1 minute."
	}
	return fmt.Sprintf("Too many attempts. Try again in %d minutes.", minutes)
}

// throttleRule says how often something may be tried before each further try has to wait longer.
type throttleRule struct {
	free   int           // tries without a wait
	window time.Duration // after which tries are forgotten, counted from the first one or from the end of the last wait
	first  time.Duration // the first wait; each further one is twice as long
	most   time.Duration
}

// throttleRow is a row of login_throttle; its zero value is that of a key without one.
type throttleRow struct {
	Failures     int
	WindowStart  time.Time
	BlockedUntil *time.Time
}

// try counts one try at now. It answers how long to wait instead when the key is blocked; the row is then unchanged.
func (r throttleRule) try(row throttleRow, now time.Time) (next throttleRow, wait time.Duration) {
	if row.BlockedUntil != nil && row.BlockedUntil.After(now) {
		return row, row.BlockedUntil.Sub(now)
	}
	if row.Failures == 0 || !now.Before(row.WindowStart.Add(r.window)) {
		row = throttleRow{WindowStart: now}
	}
	row.Failures++
	row.BlockedUntil = nil
	if row.Failures >= r.free {
		until := now.Add(r.block(row.Failures))
		row.BlockedUntil, row.WindowStart = &until, until
	}
	return row, 0
}

// block is the wait after so many failures.
func (r throttleRule) block(failures int) time.Duration {
	wait := r.first
	for range failures - r.free {
		if wait *= 2; wait >= r.most {
			return r.most
		}
	}
	return wait
}

// counted is a try that was let through and counted as a failure, until it turns out otherwise.
type counted struct {
	key          string
	blockedUntil *time.Time
}

// countTries counts a try under each key, in the order given, or none of them and a *ThrottledError. A try is counted
// before it is looked at, so that a hundred guesses at once get no more chances than a hundred in a row.
func countTries(ctx context.Context, pool *pgxpool.Pool, now time.Time, keys ...throttleKey) ([]counted, error) {
	var tries []counted
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		for _, k := range keys {
			row, err := lockThrottleTx(ctx, tx, k.key, now)
			if err != nil {
				return err
			}
			next, wait := k.rule.try(row, now)
			if wait > 0 {
				return &ThrottledError{RetryAfter: wait}
			}
			_, err = tx.Exec(ctx, `
				update login_throttle
				set failures = @failures, window_start = @window_start, blocked_until = @blocked_until
				where key = @key`,
				pgx.StrictNamedArgs{"key": k.key, "failures": next.Failures, "window_start": next.WindowStart, "blocked_until": next.BlockedUntil})
			if err != nil {
				return fmt.Errorf("count a try: %w", err)
			}
			tries = append(tries, counted{key: k.key, blockedUntil: next.BlockedUntil})
		}
		return nil
	})
	return tries, err
}

// lockThrottleTx locks the row of a key and makes it where there is none. It is one statement, because a log-in that works
// at the same moment deletes the row.
func lockThrottleTx(ctx context.Context, tx pgx.Tx, key string, now time.Time) (throttleRow, error) {
	rows, err := tx.Query(ctx, `
		insert into login_throttle as t (key, failures, window_start) values (@key, 0, @now)
		on conflict (key) do update set failures = t.failures
		returning failures, window_start, blocked_until`,
		pgx.StrictNamedArgs{"key": key, "now": now})
	if err != nil {
		return throttleRow{}, fmt.Errorf("lock throttle row: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[throttleRow])
	if err != nil {
		return throttleRow{}, fmt.Errorf("lock throttle row: %w", err)
	}
	return row, nil
}

// forgetTries undoes what countTries counted for an account and an address, in this order, once the try turns out to be
// right. The account's failures all go. The address loses this one only, and the wait that this very try began: whoever
// owns one account cannot use it to go on guessing at others.
func forgetTries(ctx context.Context, db store.DB, tries []counted) error {
	account, address := tries[0], tries[1]
	_, err := db.Exec(ctx, `delete from login_throttle where key = @key`, pgx.StrictNamedArgs{"key": account.key})
	if err != nil {
		return fmt.Errorf("forget failed log-ins: %w", err)
	}
	_, err = db.Exec(ctx, `
		update login_throttle
		set failures = greatest(failures - 1, 0),
			blocked_until = case when blocked_until = @mine then null else blocked_until end
		where key = @key`,
		pgx.StrictNamedArgs{"key": address.key, "mine": address.blockedUntil})
	if err != nil {
		return fmt.Errorf("take back a counted log-in: %w", err)
	}
	return nil
}

// throttleKey is what tries are counted under, and by which rule.
type throttleKey struct {
	key  string
	rule throttleRule
}

// accountKey hashes the address: people type passwords and other secrets into that field. What an attacker can do to an
// account is to keep its owner waiting for a quarter of an hour.
func accountKey(email string) throttleKey {
	sum := sha256.Sum256([]byte(email))
	rule := throttleRule{free: 5, window: 15 * time.Minute, first: time.Minute, most: 15 * time.Minute}
	return throttleKey{key: "account:" + hex.EncodeToString(sum[:]), rule: rule}
}

// addressKey leaves room for an office that shares one address.
func addressKey(address string) throttleKey {
	rule := throttleRule{free: 30, window: 15 * time.Minute, first: time.Minute, most: time.Hour}
	return throttleKey{key: "address:" + network(address), rule: rule}
}

func signUpKey(address string) throttleKey {
	rule := throttleRule{free: 10, window: time.Hour, first: 10 * time.Minute, most: 2 * time.Hour}
	return throttleKey{key: "sign_up:" + network(address), rule: rule}
}

// network is the part of an address that one customer of a provider has to itself: an IPv4 address, or an IPv6 /64.
// What is no address shares one bucket, "unknown".
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "unknown"
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}

package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// The keys of a session's values that this package reads. Who logs a user in puts them there; all are strings.
const (
	SessionUserID    = "user_id"
	SessionUserAgent = "user_agent"
	SessionAddress   = "address"
)

// SessionStore keeps the sessions of an scs.SessionManager in Postgres. It is an scs.CtxStore.
//
// The row's key is the SHA-256 of the token, so that who reads the database cannot use what is there; leave the manager's
// HashTokenInStore off, and its Codec at the default. A row names its user, which makes sessions listable. A session that
// has ended leaves a row without data until it would have expired: a request that was under way when the session ended
// commits it once more, and must not bring it back.
type SessionStore struct {
	pool *pgxpool.Pool
}

var _ scs.CtxStore = (*SessionStore)(nil)

// NewSessionStore returns a SessionStore on a pool.
func NewSessionStore(pool *pgxpool.Pool) *SessionStore { return &SessionStore{pool: pool} }

// FindCtx returns the data of a live session.
func (s *SessionStore) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.pool.QueryRow(ctx, `
		select data from sessions where token = @id and ended_at is null and expiry > now()`,
		pgx.StrictNamedArgs{"id": SessionID(token)}).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find session: %w", err)
	}
	return data, true, nil
}

// CommitCtx stores a session, unless it has ended.
func (s *SessionStore) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return fmt.Errorf("decode session: %w", err)
	}
	userID, _ := values[SessionUserID].(string)
	_, err = s.pool.Exec(ctx, `
		insert into sessions as s (token, data, expiry, user_id) values (@id, @data, @expiry, nullif(@user_id, ''))
		on conflict (token) do update
		set data = excluded.data, expiry = excluded.expiry, user_id = excluded.user_id, seen_at = now()
		where s.ended_at is null`,
		pgx.StrictNamedArgs{"id": SessionID(token), "data": data, "expiry": expiry, "user_id": userID})
	if err != nil {
		return fmt.Errorf("store session: %w", err)
	}
	return nil
}

// DeleteCtx ends a session.
func (s *SessionStore) DeleteCtx(ctx context.Context, token string) error {
	_, err := s.pool.Exec(ctx, endSessions+` and token = @id`, pgx.StrictNamedArgs{"id": SessionID(token)})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// Find is FindCtx for callers without a context; scs asks for it and does not call it.
func (s *SessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx for callers without a context; scs asks for it and does not call it.
func (s *SessionStore) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx for callers without a context; scs asks for it and does not call it.
func (s *SessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// Session is one place where a user is logged in.
type Session struct {
	// ID names the session in forms; it gives no access.
	ID        string `db:"token"`
	CreatedAt time.Time
	SeenAt    time.Time
	// ExpiresAt moves with use, up to the session's absolute end.
	ExpiresAt time.Time `db:"expiry"`
	UserAgent string    `db:"-"`
	Address   string    `db:"-"`
}

// SessionID is the id of the session that a token opens: to mark one's own in a list, or to keep it.
func SessionID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ListSessions lists where a user is logged in, the one used last first.
func ListSessions(ctx context.Context, db store.DB, userID string) ([]Session, error) {
	type row struct {
		Session
		Data []byte
	}
	rows, err := db.Query(ctx, `
		select token, created_at, seen_at, expiry, data from sessions
		where user_id = @user_id and ended_at is null and expiry > now()
		order by seen_at desc, token`,
		pgx.StrictNamedArgs{"user_id": userID})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	sessions := make([]Session, 0, len(found))
	for _, r := range found {
		// What does not decode was written by another version; it is a session all the same, and can be ended.
		if _, values, err := (scs.GobCodec{}).Decode(r.Data); err == nil {
			r.UserAgent, _ = values[SessionUserAgent].(string)
			r.Address, _ = values[SessionAddress].(string)
		}
		sessions = append(sessions, r.Session)
	}
	return sessions, nil
}

// RevokeSession ends one of the acting user's own sessions, by its id.
func RevokeSession(ctx context.Context, pool *pgxpool.Pool, actor Actor, sessionID string) error {
	return store.InTx(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, endSessions+` and token = @id and user_id = @user_id`,
			pgx.StrictNamedArgs{"id": sessionID, "user_id": actor.ID})
		if err != nil {
			return fmt.Errorf("revoke session: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return store.ErrNotFound
		}
		return Audit(ctx, tx, actor.In(""), "session.revoke", "user", actor.ID, map[string]any{"sessions": 1})
	})
}

// RevokeOtherSessions ends all of the acting user's sessions but the one that keepToken opens, and returns how many.
func RevokeOtherSessions(ctx context.Context, pool *pgxpool.Pool, actor Actor, keepToken string) (revoked int64, err error) {
	err = store.InTx(ctx, pool, func(tx pgx.Tx) (err error) {
		if revoked, err = revokeSessions(ctx, tx, actor.ID, keepToken); err != nil {
			return err
		}
		return Audit(ctx, tx, actor.In(""), "session.revoke", "user", actor.ID, map[string]any{"sessions": revoked})
	})
	return revoked, err
}

// endSessions empties sessions that have not ended; a condition on which ones follows it.
const endSessions = `update sessions set ended_at = now(), data = '' where ended_at is null`

func revokeSessions(ctx context.Context, db store.DB, userID, keepToken string) (int64, error) {
	tag, err := db.Exec(ctx, endSessions+` and user_id = @user_id and token <> @keep`,
		pgx.StrictNamedArgs{"user_id": userID, "keep": SessionID(keepToken)})
	if err != nil {
		return 0, fmt.Errorf("revoke sessions of user %s: %w", userID, err)
	}
	return tag.RowsAffected(), nil
}

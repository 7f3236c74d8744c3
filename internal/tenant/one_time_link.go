package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// LinkPurpose says what a one-time link is for. A link works for its own purpose only.
type LinkPurpose string

// The purposes of one-time links.
const (
	LinkSetUp        LinkPurpose = "setup"         // makes the first admin
	LinkConfirmEmail LinkPurpose = "confirm_email" // ends a sign-up
	LinkChangeEmail  LinkPurpose = "change_email"  // moves a user to another address
)

// linkLife is how long a link works.
const linkLife = 24 * time.Hour

// Link is what a one-time link stands for. The token itself is known only to who holds the link; its SHA-256 is stored.
type Link struct {
	Purpose LinkPurpose
	// UserID is empty for a set-up.
	UserID    string
	ExpiresAt time.Time
	Detail    LinkDetail
}

// LinkDetail is what a purpose needs to remember.
type LinkDetail struct {
	// Email is the address that a LinkChangeEmail moves the user to.
	Email string `json:"email,omitempty"`
}

const linkColumns = `purpose, coalesce(user_id, '') as user_id, expires_at, detail`

// Link looks at a link without using it up, for the page that it opens. A link that never was, was used, or has expired
// is a *store.ConflictError with code "link_spent".
func (a *Accounts) Link(ctx context.Context, purpose LinkPurpose, token string) (Link, error) {
	rows, err := a.pool.Query(ctx, `
		select `+linkColumns+` from one_time_links
		where token_hash = @hash and purpose = @purpose and used_at is null and expires_at > @now`,
		pgx.StrictNamedArgs{"hash": linkHash(token), "purpose": purpose, "now": a.now()})
	return collectLink(rows, err)
}

// newLink stores a new link and returns its token, which is not kept.
func (a *Accounts) newLink(ctx context.Context, db store.DB, purpose LinkPurpose, userID string, detail LinkDetail) (token string, err error) {
	token = base64.RawURLEncoding.EncodeToString(randomBytes(32))
	raw, err := json.Marshal(detail)
	if err != nil {
		return "", fmt.Errorf("encode link detail: %w", err)
	}
	_, err = db.Exec(ctx, `
		insert into one_time_links (token_hash, purpose, user_id, detail, created_at, expires_at)
		values (@hash, @purpose, nullif(@user_id, ''), @detail, @now, @expires)`,
		pgx.StrictNamedArgs{
			"hash": linkHash(token), "purpose": purpose, "user_id": userID, "detail": json.RawMessage(raw),
			"now": a.now(), "expires": a.now().Add(linkLife),
		})
	if err != nil {
		return "", fmt.Errorf("store %s link: %w", purpose, err)
	}
	return token, nil
}

// useLinkTx uses a link up, in one statement, so that of two clicks at once only one succeeds.
func (a *Accounts) useLinkTx(ctx context.Context, tx pgx.Tx, purpose LinkPurpose, token string) (Link, error) {
	rows, err := tx.Query(ctx, `
		update one_time_links set used_at = @now
		where token_hash = @hash and purpose = @purpose and used_at is null and expires_at > @now
		returning `+linkColumns,
		pgx.StrictNamedArgs{"hash": linkHash(token), "purpose": purpose, "now": a.now()})
	return collectLink(rows, err)
}

// voidLinksTx uses up all links of a purpose that are left, of one user or, with an empty userID, of all.
func (a *Accounts) voidLinksTx(ctx context.Context, tx pgx.Tx, purpose LinkPurpose, userID string) error {
	_, err := tx.Exec(ctx, `
		update one_time_links set used_at = @now
		where purpose = @purpose and used_at is null and (@user_id = '' or user_id = @user_id)`,
		pgx.StrictNamedArgs{"purpose": purpose, "user_id": userID, "now": a.now()})
	if err != nil {
		return fmt.Errorf("void %s links: %w", purpose, err)
	}
	return nil
}

func collectLink(rows pgx.Rows, err error) (Link, error) {
	if err != nil {
		return Link{}, fmt.Errorf("read one-time link: %w", err)
	}
	link, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Link])
	if errors.Is(err, pgx.ErrNoRows) {
		return Link{}, linkSpent()
	}
	if err != nil {
		return Link{}, fmt.Errorf("read one-time link: %w", err)
	}
	return link, nil
}

func linkSpent() error {
	return &store.ConflictError{Code: "link_spent", Sentence: "This link was used before or has expired."}
}

func linkHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

package tenant

import (
	"context"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// SetUpLink returns the token of a new link that makes the first admin, or "" when there is an admin already. Each node
// that starts prints one; all of them work until one is used.
func (a *Accounts) SetUpLink(ctx context.Context) (token string, err error) {
	exists, err := AdminExists(ctx, a.pool)
	if err != nil || exists {
		return "", err
	}
	return a.newLink(ctx, a.pool, LinkSetUp, "", LinkDetail{})
}

// SetUp makes the first admin and uses up all set-up links. When there is an admin by now, made on the command line
// perhaps, it fails with a *store.ConflictError like that of a spent link.
func (a *Accounts) SetUp(ctx context.Context, token, email, password string) (User, error) {
	if _, err := a.Link(ctx, LinkSetUp, token); err != nil {
		return User{}, err
	}
	var invalid store.InvalidError
	email, problem := NormalizeEmail(email)
	if problem != "" {
		invalid.Add("email", problem)
	}
	CheckPassword(&invalid, "password", password, email)
	if err := invalid.OrNil(); err != nil {
		return User{}, err
	}
	hash, err := a.passwords.Hash(ctx, password)
	if err != nil {
		return User{}, err
	}

	var user User
	err = store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		// All links first: this waits for another set-up under way, which voids this link too.
		if err := a.lockSetUpTx(ctx, tx); err != nil {
			return err
		}
		if _, err := a.useLinkTx(ctx, tx, LinkSetUp, token); err != nil {
			return err
		}
		if err := a.voidLinksTx(ctx, tx, LinkSetUp, ""); err != nil {
			return err
		}
		exists, err := AdminExists(ctx, tx)
		if err != nil {
			return err
		}
		if exists {
			return linkSpent()
		}
		if user, err = a.createUserTx(ctx, tx, email, hash, true); err != nil {
			return err
		}
		return Audit(ctx, tx, ActorOf(user), "user.set_up", "user", user.ID, map[string]any{"email": email, "admin": true})
	})
	return user, err
}

// lockSetUpTx locks every set-up link, in one order.
func (a *Accounts) lockSetUpTx(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		select from one_time_links where purpose = @purpose and used_at is null order by token_hash for update`,
		pgx.StrictNamedArgs{"purpose": LinkSetUp})
	return err
}

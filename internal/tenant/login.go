package tenant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// errHashMoved means that a password hash changed between its check and the log-in.
var errHashMoved = errors.New("the password hash changed meanwhile")

// Authenticate returns the user of an e-mail address and password. address is the client's IP address. It fails with
// ErrWrongLogin, or with a *ThrottledError before anything is looked at. An unknown address takes as long as a wrong
// password. A success forgets the account's failures, notes the log-in, and renews a hash of another cost.
func (a *Accounts) Authenticate(ctx context.Context, email, password, address string) (User, error) {
	normal, problem := NormalizeEmail(email)
	if problem != "" {
		normal = strings.ToLower(strings.TrimSpace(email))
	}
	tries, err := countTries(ctx, a.pool, a.now(), accountKey(normal), addressKey(address))
	if err != nil {
		return User{}, err
	}
	user, err := a.logIn(ctx, normal, password, tries)
	if errors.Is(err, errHashMoved) {
		// Another log-in renewed the hash, or the password was changed: the hash of now tells which.
		user, err = a.logIn(ctx, normal, password, tries)
	}
	if errors.Is(err, errHashMoved) {
		return User{}, ErrWrongLogin
	}
	return user, err
}

// logIn checks a password whose tries were counted, and lets its user in. It fails with errHashMoved when the hash that
// it checked is no longer the user's.
func (a *Accounts) logIn(ctx context.Context, email, password string, tries []counted) (User, error) {
	var id, hash string
	err := store.MapError(a.pool.QueryRow(ctx, `
		select id, coalesce(password_hash, '') from users where lower(email) = @email and email_confirmed_at is not null`,
		pgx.StrictNamedArgs{"email": email}).Scan(&id, &hash))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return User{}, fmt.Errorf("look up log-in: %w", err)
	}
	matches, stale, err := a.passwords.Verify(ctx, hash, password)
	if err != nil {
		return User{}, fmt.Errorf("verify password: %w", err)
	}
	if !matches {
		return User{}, ErrWrongLogin
	}
	renewed := hash
	if stale {
		if renewed, err = a.passwords.Hash(ctx, password); err != nil {
			return User{}, fmt.Errorf("renew password hash: %w", err)
		}
	}

	var user User
	err = store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		if err := forgetTries(ctx, tx, tries); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			update users set last_login_at = @now, password_hash = @renewed
			where id = @id and password_hash = @hash
			returning `+userColumns,
			pgx.StrictNamedArgs{"id": id, "hash": hash, "renewed": renewed, "now": a.now()})
		if user, err = collectUser(rows, err); errors.Is(err, store.ErrNotFound) {
			return errHashMoved
		}
		if err != nil {
			return fmt.Errorf("note log-in: %w", err)
		}
		return Audit(ctx, tx, ActorOf(user), "user.log_in", "user", user.ID, nil)
	})
	return user, err
}

// LogInVerified lets in the user of an address that an identity provider vouches for, and makes the user on the first
// visit. issuer names the provider in the audit log. The caller has verified the provider's token, and that it says the
// address is verified. It is not throttled: nothing can be guessed here.
func (a *Accounts) LogInVerified(ctx context.Context, email, issuer string) (User, error) {
	email, problem := NormalizeEmail(email)
	if problem != "" {
		return User{}, store.Invalid("email", problem)
	}
	var user User
	err := store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			insert into users as u (id, email, email_confirmed_at, last_login_at) values (@id, @email, @now, @now)
			on conflict (lower(email)) do update
			set last_login_at = @now, email_confirmed_at = coalesce(u.email_confirmed_at, @now)
			returning `+userColumns,
			pgx.StrictNamedArgs{"id": store.NewID("user"), "email": email, "now": a.now()})
		if user, err = collectUser(rows, err); err != nil {
			return fmt.Errorf("log in by %s: %w", issuer, err)
		}
		return Audit(ctx, tx, ActorOf(user), "user.log_in", "user", user.ID, map[string]any{"issuer": issuer})
	})
	return user, err
}

// ChangePassword sets a user's own password after checking the present one, which is throttled like a log-in. All other
// sessions of the user end; keepToken is the session token of the one that stays. A wrong present password is an
// *store.InvalidError of field "currentPassword".
func (a *Accounts) ChangePassword(ctx context.Context, user User, current, next, address, keepToken string) error {
	if err := checkNewPassword(next, user.Email); err != nil {
		return err
	}
	tries, err := countTries(ctx, a.pool, a.now(), accountKey(user.Email), addressKey(address))
	if err != nil {
		return err
	}
	var hash string
	err = a.pool.QueryRow(ctx, `select coalesce(password_hash, '') from users where id = @id`,
		pgx.StrictNamedArgs{"id": user.ID}).Scan(&hash)
	if err != nil {
		return fmt.Errorf("read password hash: %w", store.MapError(err))
	}
	matches, _, err := a.passwords.Verify(ctx, hash, current)
	if err != nil {
		return fmt.Errorf("verify password: %w", err)
	}
	if !matches {
		return store.Invalid("currentPassword", "This is not your present password.")
	}

	return a.storePassword(ctx, ActorOf(user), user.ID, next, keepToken, func(tx pgx.Tx) error {
		return forgetTries(ctx, tx, tries)
	})
}

// SetPassword sets the password of any user, on the word of an admin or of the command line. The user's address counts as
// confirmed from then on, and all of the user's sessions end.
func (a *Accounts) SetPassword(ctx context.Context, actor Actor, userID, password string) error {
	if err := actor.Require(PermAdmin); err != nil {
		return err
	}
	user, err := UserByID(ctx, a.pool, userID)
	if err != nil {
		return err
	}
	if err := checkNewPassword(password, user.Email); err != nil {
		return err
	}
	return a.storePassword(ctx, actor, userID, password, "", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update users set email_confirmed_at = coalesce(email_confirmed_at, @now) where id = @id`,
			pgx.StrictNamedArgs{"id": userID, "now": a.now()})
		return err
	})
}

func checkNewPassword(password, email string) error {
	var invalid store.InvalidError
	CheckPassword(&invalid, "password", password, email)
	return invalid.OrNil()
}

// storePassword hashes a checked password and stores it, in one transaction with what also does, and with the end of the
// user's sessions but keepToken's.
func (a *Accounts) storePassword(ctx context.Context, actor Actor, userID, password, keepToken string, also func(pgx.Tx) error) error {
	hash, err := a.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update users set password_hash = @hash where id = @id`,
			pgx.StrictNamedArgs{"id": userID, "hash": hash}); err != nil {
			return fmt.Errorf("set password: %w", err)
		}
		if err := also(tx); err != nil {
			return fmt.Errorf("set password: %w", err)
		}
		if _, err := revokeSessions(ctx, tx, userID, keepToken); err != nil {
			return err
		}
		return Audit(ctx, tx, actor, "user.set_password", "user", userID, nil)
	})
}

package tenant

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// User is a person who can have an account, in any number of projects.
type User struct {
	ID    string
	Email string // normalised, see NormalizeEmail
	// Admin says that the user is an admin of the installation.
	Admin       bool `db:"is_admin"`
	HasPassword bool
	// EmailConfirmedAt is nil until the user showed that the address is theirs; such a user cannot log in.
	EmailConfirmedAt *time.Time
	CreatedAt        time.Time
	LastLoginAt      *time.Time
}

const userColumns = `id, email, is_admin, password_hash is not null as has_password, email_confirmed_at, created_at, last_login_at`

// NewUser is what CreateUser needs.
type NewUser struct {
	Email string
	// Password may be empty: the user then cannot log in with one until it is set.
	Password string
	Admin    bool
}

// CreateUser makes a user on the word of an admin or of the command line, whose address therefore counts as confirmed. An
// address that is taken is a *store.ConflictError with code "email_taken".
func (a *Accounts) CreateUser(ctx context.Context, actor Actor, n NewUser) (User, error) {
	if err := actor.Require(PermAdmin); err != nil {
		return User{}, err
	}
	var invalid store.InvalidError
	email, problem := NormalizeEmail(n.Email)
	if problem != "" {
		invalid.Add("email", problem)
	}
	if n.Password != "" {
		CheckPassword(&invalid, "password", n.Password, email)
	}
	if err := invalid.OrNil(); err != nil {
		return User{}, err
	}
	hash := ""
	if n.Password != "" {
		var err error
		if hash, err = a.passwords.Hash(ctx, n.Password); err != nil {
			return User{}, err
		}
	}

	var user User
	err := store.InTx(ctx, a.pool, func(tx pgx.Tx) (err error) {
		if user, err = a.createUserTx(ctx, tx, email, hash, n.Admin); err != nil {
			return err
		}
		return Audit(ctx, tx, actor, "user.create", "user", user.ID, map[string]any{"email": email, "admin": n.Admin})
	})
	return user, err
}

// createUserTx makes a confirmed user. An empty hash means no password. The caller writes the audit row.
func (a *Accounts) createUserTx(ctx context.Context, tx pgx.Tx, email, hash string, admin bool) (User, error) {
	rows, err := tx.Query(ctx, `
		insert into users (id, email, password_hash, is_admin, email_confirmed_at)
		values (@id, @email, nullif(@hash, ''), @admin, @now)
		returning `+userColumns,
		pgx.StrictNamedArgs{"id": store.NewID("user"), "email": email, "hash": hash, "admin": admin, "now": a.now()})
	user, err := collectUser(rows, err)
	if store.IsUnique(err, "users_email_key") {
		return User{}, emailTaken()
	}
	if err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	return user, nil
}

func emailTaken() error {
	return &store.ConflictError{Code: "email_taken", Sentence: "There is a user with this e-mail address already."}
}

// UserByID reads a user.
func UserByID(ctx context.Context, db store.DB, id string) (User, error) {
	rows, err := db.Query(ctx, `select `+userColumns+` from users where id = @id`, pgx.StrictNamedArgs{"id": id})
	user, err := collectUser(rows, err)
	if err != nil {
		return User{}, fmt.Errorf("read user %s: %w", id, err)
	}
	return user, nil
}

// UserByEmail reads the user of an address, however it is written.
func UserByEmail(ctx context.Context, db store.DB, email string) (User, error) {
	normal, problem := NormalizeEmail(email)
	if problem != "" {
		return User{}, fmt.Errorf("read user by e-mail: %w", store.ErrNotFound)
	}
	rows, err := db.Query(ctx, `select `+userColumns+` from users where lower(email) = @email`, pgx.StrictNamedArgs{"email": normal})
	user, err := collectUser(rows, err)
	if err != nil {
		return User{}, fmt.Errorf("read user by e-mail: %w", err)
	}
	return user, nil
}

// AdminExists reports whether the installation has an admin who can log in.
func AdminExists(ctx context.Context, db store.DB) (bool, error) {
	var exists bool
	err := db.QueryRow(ctx, `select exists (select from users where is_admin and email_confirmed_at is not null)`).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for an admin: %w", err)
	}
	return exists, nil
}

// SetAdmin makes a user an admin of the installation, or no longer one. The last admin stays.
func (a *Accounts) SetAdmin(ctx context.Context, actor Actor, userID string, admin bool) (User, error) {
	if err := actor.Require(PermAdmin); err != nil {
		return User{}, err
	}
	var user User
	err := store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		// The lock lets two admins who demote each other at once see one another.
		rows, err := tx.Query(ctx, `select id from users where is_admin order by id for update`)
		if err != nil {
			return fmt.Errorf("lock admins: %w", err)
		}
		admins, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("lock admins: %w", err)
		}
		if !admin && len(admins) == 1 && admins[0] == userID {
			return &store.ConflictError{Code: "last_admin", Sentence: "This is the last admin. Make someone else an admin first."}
		}
		rows, err = tx.Query(ctx, `update users set is_admin = @admin where id = @id returning `+userColumns,
			pgx.StrictNamedArgs{"id": userID, "admin": admin})
		if user, err = collectUser(rows, err); err != nil {
			return fmt.Errorf("set admin of user %s: %w", userID, err)
		}
		return Audit(ctx, tx, actor, "user.set_admin", "user", userID, map[string]any{"admin": admin})
	})
	return user, err
}

// collectUser reads the one user of a query whose error it is given as well.
func collectUser(rows pgx.Rows, err error) (User, error) {
	if err != nil {
		return User{}, err
	}
	user, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[User])
	return user, store.MapError(err)
}

package tenant

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrWrongLogin means that no user has this address and password. It says the same for an unknown address, a user without
// a password, and one whose address is not confirmed.
var ErrWrongLogin = errors.New("the e-mail address or the password is wrong")

// AccountsOptions sets up Accounts.
type AccountsOptions struct {
	Pool *pgxpool.Pool
	// Passwords hashes; nil means the product's own cost. Share one between all Accounts of a process.
	Passwords *Passwords
	// Now is the clock of throttles and links; nil means time.Now.
	Now func() time.Time
}

// Accounts is how people get in: sign-up, set-up of the first admin, log-in and passwords. It is safe for concurrent use.
// No method holds a database connection while it hashes a password.
type Accounts struct {
	pool      *pgxpool.Pool
	passwords *Passwords
	now       func() time.Time
}

// NewAccounts returns Accounts on a pool.
func NewAccounts(o AccountsOptions) *Accounts {
	a := &Accounts{pool: o.Pool, passwords: o.Passwords, now: o.Now}
	if a.passwords == nil {
		a.passwords = NewPasswords(Argon2Params{})
	}
	if a.now == nil {
		a.now = time.Now
	}
	return a
}

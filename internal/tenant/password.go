package tenant

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"

	"entrega/internal/store"
)

const (
	minPasswordRunes    = 12
	maxPasswordBytes    = 1024
	minPasswordVariety  = 5 // different characters
	passwordSaltSize    = 16
	passwordHashSize    = 32
	passwordsInParallel = 2
)

// Argon2Params is the cost of one hash.
type Argon2Params struct {
	Time      uint32 // passes
	MemoryKiB uint32
	Threads   uint8
}

// defaultArgon2Params is the second recommended option of RFC 9106, section 4: for where 2 GiB are too much.
func defaultArgon2Params() Argon2Params {
	return Argon2Params{Time: 3, MemoryKiB: 64 * 1024, Threads: 4}
}

// Passwords hashes and checks passwords with Argon2id. At most two hashes run at once, each of them in 64 MiB, so that a
// flood of log-ins costs neither the machine's memory nor the workers their processors. It is safe for concurrent use.
type Passwords struct {
	params Argon2Params
	turn   chan struct{}
	// nobody is a hash that no password has: what a user without one is checked against.
	nobody string
}

// NewPasswords returns Passwords of the given cost; the zero value means the product's own.
func NewPasswords(params Argon2Params) *Passwords {
	if params == (Argon2Params{}) {
		params = defaultArgon2Params()
	}
	p := &Passwords{params: params, turn: make(chan struct{}, passwordsInParallel)}
	p.nobody = formatPHC(params, randomBytes(passwordSaltSize), randomBytes(passwordHashSize))
	return p
}

// Hash returns the PHC string of a password that Check accepts. It waits for its turn as long as ctx allows.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	prepared, ok := prepare(password)
	if !ok {
		return "", errors.New("this password cannot be set: check it first")
	}
	salt := randomBytes(passwordSaltSize)
	hash, err := p.derive(ctx, p.params, prepared, salt, passwordHashSize)
	if err != nil {
		return "", err
	}
	return formatPHC(p.params, salt, hash), nil
}

// Verify reports whether password has the hash phc, and whether that hash has a cost other than today's, so that the
// caller replaces it while it has the password at hand. An empty phc costs the same time and matches nothing, so that a
// user without a password, or none at all, cannot be told from a wrong password.
func (p *Passwords) Verify(ctx context.Context, phc, password string) (matches, stale bool, err error) {
	known := phc != ""
	if !known {
		phc = p.nobody
	}
	params, salt, want, err := parsePHC(phc)
	if err != nil {
		return false, false, err
	}
	prepared, ok := prepare(password)
	known = known && ok
	got, err := p.derive(ctx, params, prepared, salt, uint32(len(want)))
	if err != nil {
		return false, false, err
	}
	matches = subtle.ConstantTimeCompare(got, want) == 1 && known
	return matches, params != p.params || len(want) != passwordHashSize, nil
}

func (p *Passwords) derive(ctx context.Context, params Argon2Params, password string, salt []byte, size uint32) ([]byte, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to hash a password: %w", ctx.Err())
	}
	return argon2.IDKey([]byte(password), salt, params.Time, params.MemoryKiB, params.Threads, size), nil
}

// prepare brings a password to the form that is hashed (RFC 8265, OpaqueString), so that it does not matter how a keyboard
// composes an accent. It is not ok for what could never have been set; such a password still costs a hash.
func prepare(password string) (prepared string, ok bool) {
	if len(password) > maxPasswordBytes {
		return "", false
	}
	prepared, err := precis.OpaqueString.String(password)
	return prepared, err == nil
}

// CheckPassword notes in invalid what is wrong with a new password for the user of this address, under field.
func CheckPassword(invalid *store.InvalidError, field, password, email string) {
	local, _, _ := strings.Cut(email, "@")
	seen := make(map[rune]bool)
	for _, r := range password {
		seen[r] = true
	}
	_, ok := prepare(password)
	switch {
	case utf8.RuneCountInString(password) < minPasswordRunes:
		invalid.Add(field, fmt.Sprintf("A password needs %d characters or more.", minPasswordRunes))
	case len(password) > maxPasswordBytes:
		invalid.Add(field, fmt.Sprintf("A password may have %d bytes at most.", maxPasswordBytes))
	case !ok:
		invalid.Add(field, "A password may not hold control characters.")
	case email != "" && (strings.EqualFold(password, email) || strings.EqualFold(password, local)):
		invalid.Add(field, "A password may not be the e-mail address.")
	case len(seen) < minPasswordVariety:
		invalid.Add(field, fmt.Sprintf("A password needs %d different characters or more.", minPasswordVariety))
	}
}

// formatPHC writes a hash in the PHC string format, which carries its own parameters.
func formatPHC(params Argon2Params, salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, params.MemoryKiB, params.Time, params.Threads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

var errBadPHC = errors.New("the stored password hash is not an Argon2id PHC string")

func parsePHC(phc string) (params Argon2Params, salt, hash []byte, err error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return Argon2Params{}, nil, nil, errBadPHC
	}
	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &params.MemoryKiB, &params.Time, &params.Threads)
	if err != nil || n != 3 || params.Time < 1 || params.Threads < 1 {
		return Argon2Params{}, nil, nil, errBadPHC
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	hash, hashErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || hashErr != nil || len(salt) < 8 || len(hash) < 16 {
		return Argon2Params{}, nil, nil, errBadPHC
	}
	return params, salt, hash, nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}

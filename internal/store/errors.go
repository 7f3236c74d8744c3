package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotFound says that the row does not exist, or not in the caller's project. The two read the same on purpose.
var ErrNotFound = errors.New("not found")

// SQLSTATEs that the program acts on (PostgreSQL manual, appendix A).
const (
	codeUniqueViolation    = "23505"
	codeTooManyConnections = "53300"
	codeAdminShutdown      = "57P01"
	codeCrashShutdown      = "57P02"
	codeCannotConnectNow   = "57P03"
	classConnection        = "08"
)

// ConflictError says that the request is sound but the present state does not allow it. Code is stable and part of the
// API; Sentence is for a person.
type ConflictError struct {
	Code     string
	Sentence string
}

func (e *ConflictError) Error() string { return e.Sentence }

// FieldError is what is wrong with one field, in a sentence for a person. Field is named as in the API, camelCase, with
// dots and indexes for nested ones.
type FieldError struct {
	Field    string
	Sentence string
}

// InvalidError collects what is wrong with an input, in the order it was found, so that a form can show all at once.
// Its zero value is ready to use.
type InvalidError struct {
	Fields []FieldError
}

// Invalid makes an InvalidError of one field.
func Invalid(field, sentence string) *InvalidError {
	return new(InvalidError).Add(field, sentence)
}

// Add notes one more field and returns e, for chaining.
func (e *InvalidError) Add(field, sentence string) *InvalidError {
	e.Fields = append(e.Fields, FieldError{Field: field, Sentence: sentence})
	return e
}

// OrNil returns e as an error, or a true nil when nothing was added.
func (e *InvalidError) OrNil() error {
	if e == nil || len(e.Fields) == 0 {
		return nil
	}
	return e
}

// Sentence returns the first sentence about field, or "".
func (e *InvalidError) Sentence(field string) string {
	if e == nil {
		return ""
	}
	for _, f := range e.Fields {
		if f.Field == field {
			return f.Sentence
		}
	}
	return ""
}

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + ": " + f.Sentence
	}
	return "invalid: " + strings.Join(parts, "; ")
}

// MapError turns pgx's "no rows" into ErrNotFound and leaves every other error as it is. Call it on the error of a
// statement that reads or changes one row.
func MapError(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// IsUnique reports whether err is a violation of the named unique constraint or index; of any, when constraint is "".
// The caller knows what the constraint means and says so with a ConflictError.
func IsUnique(err error, constraint string) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != codeUniqueViolation {
		return false
	}
	return constraint == "" || pgErr.ConstraintName == constraint
}

// IsUnavailable reports whether err means that the database could not be asked: unreachable, restarting or out of
// connections. Nothing can be concluded from it about a commit that was under way. A caller whose own context ended is not
// told so.
func IsUnavailable(err error) bool {
	var connectErr *pgconn.ConnectError
	if errors.As(err, &connectErr) {
		return true
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case codeTooManyConnections, codeAdminShutdown, codeCrashShutdown, codeCannotConnectNow:
			return true
		}
		return strings.HasPrefix(pgErr.Code, classConnection)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

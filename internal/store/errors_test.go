package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"entrega/internal/store"
	"entrega/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

func TestInvalidError_KeepsTheOrderOfItsFields(t *testing.T) {
	t.Parallel()
	err := store.Invalid("url", "It must be https.").Add("name", "It is empty.").OrNil()
	var invalid *store.InvalidError
	if !errors.As(fmt.Errorf("create: %w", err), &invalid) {
		t.Fatalf("error = %v", err)
	}
	want := []store.FieldError{{Field: "url", Sentence: "It must be https."}, {Field: "name", Sentence: "It is empty."}}
	if diff := cmp.Diff(want, invalid.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got := invalid.Sentence("name"); got != "It is empty." {
		t.Errorf("sentence about name = %q", got)
	}
}

func TestInvalidError_NothingAddedIsATrueNil(t *testing.T) {
	t.Parallel()
	var invalid store.InvalidError
	if err := invalid.OrNil(); err != nil {
		t.Errorf("error = %v", err)
	}
	if err := (*store.InvalidError)(nil).OrNil(); err != nil {
		t.Errorf("error of nil = %v", err)
	}
}

func TestMapError_OnlyNoRowsBecomesNotFound(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for _, test := range []struct{ err, want error }{
		{fmt.Errorf("scan: %w", pgx.ErrNoRows), store.ErrNotFound},
		{other, other},
		{nil, nil},
	} {
		if got := store.MapError(test.err); !errors.Is(got, test.want) {
			t.Errorf("MapError(%v) = %v, want %v", test.err, got, test.want)
		}
	}
}

func TestIsUnique_ByConstraint(t *testing.T) {
	t.Parallel()
	tx := storetest.Tx(t, numbers)
	if err := insert(t, tx, 1); err != nil {
		t.Fatal(err)
	}
	err := fmt.Errorf("insert: %w", insert(t, tx, 1))
	for constraint, want := range map[string]bool{"one_of_each": true, "": true, "another": false} {
		if got := store.IsUnique(err, constraint); got != want {
			t.Errorf("IsUnique(%q) = %v, want %v", constraint, got, want)
		}
	}
	if store.IsUnique(insert(t, tx, 2), "") { // The transaction has failed: another error.
		t.Error("any error counts as unique")
	}
}

func TestIsUnavailable_OnlyWhenTheDatabaseCouldNotBeAsked(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, cancelled := pool.Exec(ended, "select 1")
	_, refused := pgx.Connect(t.Context(), "postgres://127.0.0.1:1/none?sslmode=disable")
	_, terminated := pool.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
	_, mistaken := pool.Exec(t.Context(), "select nonsense")
	reset := resetUnderQuery(t)

	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"connection refused", refused, true},
		{"session terminated by an administrator", terminated, true},
		{"connection reset under a query", reset, true},
		{"the caller gave up", cancelled, false},
		{"a mistake in the statement", mistaken, false},
	} {
		if test.err == nil {
			t.Errorf("%s: no error", test.name)
		}
		if got := store.IsUnavailable(test.err); got != test.want {
			t.Errorf("%s: IsUnavailable(%v) = %v, want %v", test.name, test.err, got, test.want)
		}
	}
}

// resetUnderQuery is the error of a statement whose connection breaks while it waits for the answer, as when the server crashes.
func resetUnderQuery(t *testing.T) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		server := pgproto3.NewBackend(conn, conn)
		_, started := server.ReceiveStartupMessage()
		server.Send(&pgproto3.AuthenticationOk{})
		server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		flushed := server.Flush()
		_, asked := server.Receive()
		if err := errors.Join(started, flushed, asked, conn.(*net.TCPConn).SetLinger(0), conn.Close()); err != nil {
			t.Error(err)
		}
	}()
	conn, err := pgx.Connect(t.Context(), "postgres://"+listener.Addr().String()+"/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "select 1", pgx.QueryExecModeSimpleProtocol)
	return err
}

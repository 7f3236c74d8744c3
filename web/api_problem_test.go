package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func TestProblemFor_GivesEveryErrorItsStatusAndCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{
		{store.ErrNotFound, 404, "not_found"},
		{&store.ConflictError{Code: "already_queued", Sentence: "It is queued."}, 409, "already_queued"},
		{store.Invalid("url", "Wrong."), 422, "invalid"},
		{&malformedError{"Wrong."}, 400, "malformed_json"},
		{tenant.ErrForbidden, 403, "forbidden"},
		{newProblem(http.StatusUnauthorized, "unauthorized", "No key."), 401, "unauthorized"},
		{&pgconn.PgError{Code: "57P03"}, 503, "unavailable"},
		{context.DeadlineExceeded, 503, "unavailable"},
		{errors.New("anything else"), 500, "internal"},
	} {
		p := problemFor(fmt.Errorf("a layer: %w", test.err))
		if p.Status != test.status || p.Code != test.code || p.Title != http.StatusText(test.status) || p.Detail == "" || p.Errors == nil {
			t.Errorf("%v: %+v", test.err, p)
		}
	}
	if p := problemFor(&pgconn.PgError{Code: "57P03"}); p.headers.Get("Retry-After") == "" {
		t.Error("an unavailable database has no Retry-After")
	}
}

package tenant_test

import (
	"errors"
	"sync"
	"testing"

	"entrega/internal/tenant"
)

func TestKeyChecker_ManyAtOnceGetTheirOwnActors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	checker := tenant.NewKeyChecker(b.pool)
	var all sync.WaitGroup
	for _, name := range []string{"acme", "globex"} {
		project, owner := b.project(t, name)
		key, secret := b.key(t, owner, tenant.ScopePublish)
		revoked, gone := b.key(t, owner, tenant.ScopePublish)
		if _, err := tenant.RevokeAPIKey(t.Context(), b.pool, owner, project.ID, revoked.ID); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			all.Go(func() {
				actor, err := checker.Authenticate(t.Context(), secret)
				if err != nil || actor.ID != key.ID || actor.ProjectID != project.ID {
					t.Errorf("%s: %+v, %v", name, actor, err)
				}
			})
			all.Go(func() {
				if _, err := checker.Authenticate(t.Context(), gone); !errors.Is(err, tenant.ErrUnknownKey) {
					t.Errorf("%s: a revoked key: %v", name, err)
				}
			})
		}
	}
	all.Wait()
}

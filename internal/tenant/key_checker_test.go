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

func TestKeyChecker_RecallsWhatWasGoodLately(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	key, secret := b.key(t, owner, tenant.ScopePublish)
	checker := tenant.NewKeyChecker(b.pool)
	recalled := func() (tenant.Actor, bool) { return checker.Recall(secret) }
	if actor, ok := recalled(); ok {
		t.Errorf("a key that was never checked is recalled as %+v", actor)
	}
	authenticate := func() error {
		_, err := checker.Authenticate(t.Context(), secret)
		return err
	}
	if err := authenticate(); err != nil {
		t.Fatal(err)
	}
	if actor, ok := recalled(); !ok || actor.ID != key.ID || actor.ProjectID != project.ID || !actor.Can(tenant.PermPublish) {
		t.Errorf("recalled %+v, %t", actor, ok)
	}
	if actor, ok := checker.Recall(secret[:len(secret)-1] + "_"); ok {
		t.Errorf("a wrong key is recalled as %+v", actor)
	}
	if _, err := tenant.RevokeAPIKey(t.Context(), b.pool, owner, project.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if err := authenticate(); !errors.Is(err, tenant.ErrUnknownKey) {
		t.Errorf("a revoked key that is remembered: %v", err)
	}
	if actor, ok := recalled(); ok {
		t.Errorf("a key that was found to be revoked is recalled as %+v", actor)
	}
}

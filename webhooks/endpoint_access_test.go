package webhooks_test

import (
	"errors"
	"testing"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

func TestEndpoint_AnotherProjectsDoesNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: anywhere}).Endpoint
	_, stranger := b.newProject("Other")
	for name, act := range map[string]func() error{
		"read": func() error { _, err := b.endpoints.EndpointByID(b.ctx, b.pool, stranger.ProjectID, e.ID); return err },
		"update": func() error {
			_, err := b.endpoints.UpdateEndpoint(b.ctx, stranger, e.ID, webhooks.Change{})
			return err
		},
		"delete": func() error { return b.endpoints.DeleteEndpoint(b.ctx, stranger, e.ID) },
		"rotate": func() error {
			_, err := b.endpoints.RotateSecret(b.ctx, stranger, e.ID, webhooks.Rotation{})
			return err
		},
		"disable":    func() error { _, err := b.endpoints.Disable(b.ctx, stranger, e.ID, ""); return err },
		"reactivate": func() error { _, err := b.endpoints.Reactivate(b.ctx, stranger, e.ID, ""); return err },
		"pause":      func() error { _, err := b.endpoints.Pause(b.ctx, stranger, e.ID); return err },
		"unpause":    func() error { _, err := b.endpoints.Unpause(b.ctx, stranger, e.ID); return err },
		"test":       func() error { _, err := b.endpoints.SendTest(b.ctx, stranger, e.ID); return err },
		"redeliver": func() error {
			_, err := b.endpoints.Redeliver(b.ctx, stranger, e.ID, webhooks.RedeliverRequest{})
			return err
		},
		"redeliver an event": func() error { _, err := b.endpoints.RedeliverEvent(b.ctx, stranger, "order-1", e.ID); return err },
	} {
		if err := act(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	secrets, err := b.endpoints.ListSecrets(b.ctx, b.pool, stranger.ProjectID, e.ID)
	if err != nil || len(secrets) != 0 {
		t.Errorf("secrets: %v, %v", secrets, err)
	}
	if got := b.endpoint(e.ID); got.Version != 1 || got.State() != webhooks.StateHealthy {
		t.Errorf("a stranger changed it: %+v", got)
	}
}

func TestEndpoint_ViewerMayDoNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: anywhere}).Endpoint
	viewer := b.owner
	viewer.Role = tenant.RoleViewer
	for name, act := range map[string]func() error{
		"create": func() error {
			_, err := b.endpoints.CreateEndpoint(b.ctx, viewer, webhooks.NewEndpoint{Settings: webhooks.Settings{URL: anywhere}})
			return err
		},
		"update":     func() error { _, err := b.endpoints.UpdateEndpoint(b.ctx, viewer, e.ID, webhooks.Change{}); return err },
		"delete":     func() error { return b.endpoints.DeleteEndpoint(b.ctx, viewer, e.ID) },
		"rotate":     func() error { _, err := b.endpoints.RotateSecret(b.ctx, viewer, e.ID, webhooks.Rotation{}); return err },
		"disable":    func() error { _, err := b.endpoints.Disable(b.ctx, viewer, e.ID, ""); return err },
		"reactivate": func() error { _, err := b.endpoints.Reactivate(b.ctx, viewer, e.ID, ""); return err },
		"pause":      func() error { _, err := b.endpoints.Pause(b.ctx, viewer, e.ID); return err },
		"test":       func() error { _, err := b.endpoints.SendTest(b.ctx, viewer, e.ID); return err },
		"redeliver": func() error {
			_, err := b.endpoints.Redeliver(b.ctx, viewer, e.ID, webhooks.RedeliverRequest{})
			return err
		},
	} {
		if err := act(); !errors.Is(err, tenant.ErrForbidden) {
			t.Errorf("%s: %v, want forbidden", name, err)
		}
	}
}

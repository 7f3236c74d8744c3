package tenant_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func (b bundle) audit(t *testing.T, a tenant.Actor, action, kind, id string, detail any) {
	t.Helper()
	if err := tenant.Audit(t.Context(), b.pool, a, action, kind, id, detail); err != nil {
		t.Fatal(err)
	}
}

func subjects(entries []tenant.AuditEntry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.SubjectID)
	}
	return ids
}

func TestAudit_KeepsWhoDidWhatToWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := tenant.Actor{Kind: tenant.ActorUser, ID: "user_a", Name: "ana@acme.example", ProjectID: "project_a", Role: tenant.RoleOwner}
	b.audit(t, user, "task.retry", "task", "7", map[string]any{"reason": "receiver is back"})
	b.audit(t, tenant.System("endpoint health").In("project_a"), "endpoint.disable", "endpoint", "endpoint_a", nil)

	list, err := tenant.ListAudit(t.Context(), b.pool, "project_a", tenant.AuditFilter{}, store.Page{})
	if err != nil || len(list.Rows) != 2 {
		t.Fatalf("ListAudit: %d rows, %v", len(list.Rows), err)
	}
	want := []tenant.AuditEntry{
		{
			ProjectID: "project_a", ActorKind: tenant.ActorSystem, ActorID: "endpoint health", ActorName: "endpoint health",
			Action: "endpoint.disable", SubjectKind: "endpoint", SubjectID: "endpoint_a", Detail: []byte(`{}`),
		},
		{
			ProjectID: "project_a", ActorKind: tenant.ActorUser, ActorID: "user_a", ActorName: "ana@acme.example",
			Action: "task.retry", SubjectKind: "task", SubjectID: "7", Detail: []byte(`{"reason": "receiver is back"}`),
		},
	}
	for i := range want {
		want[i].ID, want[i].At = list.Rows[i].ID, list.Rows[i].At
	}
	if diff := cmp.Diff(want, list.Rows); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestAudit_GoesWithItsTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	boom := errors.New("boom")
	err := store.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		if err := tenant.Audit(t.Context(), tx, tenant.CLI("root"), "x.y", "x", "1", nil); err != nil {
			return err
		}
		return boom
	})
	wantError(t, "InTx", err, boom)
	if n := b.count(t, `select count(*) from audit_log`); n != 0 {
		t.Errorf("%d rows are left of a transaction that was rolled back", n)
	}
}

func TestAudit_IsAppendOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.audit(t, tenant.CLI("root"), "x.y", "x", "1", nil)
	for _, sql := range []string{`update audit_log set action = 'z'`, `delete from audit_log`, `truncate audit_log`} {
		if _, err := b.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: error %v, want a refusal", sql, err)
		}
	}
	if n := b.count(t, `select count(*) from audit_log where action = 'x.y'`); n != 1 {
		t.Errorf("%d rows, want the one that was there", n)
	}
}

func TestAudit_RefusesAnActorOfNoKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := tenant.Audit(t.Context(), b.pool, tenant.Actor{}, "x.y", "x", "1", nil); err == nil {
		t.Error("an action of nobody was noted")
	}
	if err := tenant.Audit(t.Context(), b.pool, tenant.CLI("root"), "x.y", "x", "1", func() {}); err == nil {
		t.Error("a detail that is not JSON was noted")
	}
}

func TestListAudit_Filters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ana := tenant.Actor{Kind: tenant.ActorUser, ID: "user_ana", Name: "ana", ProjectID: "project_a"}
	bob := tenant.Actor{Kind: tenant.ActorUser, ID: "user_bob", Name: "bob", ProjectID: "project_a"}
	b.audit(t, ana, "task.retry", "task", "1", nil)
	b.audit(t, bob, "task.cancel", "task", "2", nil)
	b.audit(t, bob, "taskforce.make", "task", "3", nil)
	b.audit(t, tenant.CLI("root").In("project_a"), "endpoint.disable", "endpoint", "1", nil)
	b.audit(t, ana.In("project_b"), "task.retry", "task", "foreign", nil)

	var cut time.Time
	if err := b.pool.QueryRow(t.Context(), `select at from audit_log where subject_id = '3'`).Scan(&cut); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter tenant.AuditFilter
		want   []string
	}{
		{"none", tenant.AuditFilter{}, []string{"1", "3", "2", "1"}},
		{"action", tenant.AuditFilter{Action: "task.retry"}, []string{"1"}},
		{"all of a noun", tenant.AuditFilter{Action: "task."}, []string{"2", "1"}},
		{"a wildcard is a character", tenant.AuditFilter{Action: "%."}, nil},
		{"actor kind", tenant.AuditFilter{ActorKind: tenant.ActorCLI}, []string{"1"}},
		{"actor", tenant.AuditFilter{ActorID: "user_bob"}, []string{"3", "2"}},
		{"subject kind", tenant.AuditFilter{SubjectKind: "endpoint"}, []string{"1"}},
		{"subject", tenant.AuditFilter{SubjectKind: "task", SubjectID: "1"}, []string{"1"}},
		{"since", tenant.AuditFilter{Since: cut}, []string{"1", "3"}},
		{"until", tenant.AuditFilter{Until: cut}, []string{"2", "1"}},
		{"all together", tenant.AuditFilter{Action: "task.", ActorKind: tenant.ActorUser, ActorID: "user_bob", SubjectKind: "task", SubjectID: "2", Since: cut.Add(-time.Hour), Until: cut}, []string{"2"}},
		{"no match", tenant.AuditFilter{SubjectID: "foreign"}, nil},
	} {
		list, err := tenant.ListAudit(t.Context(), b.pool, "project_a", tt.filter, store.Page{})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, subjects(list.Rows)); diff != "" {
			t.Errorf("%s: ListAudit (-want +got):\n%s", tt.name, diff)
		}
		var exported []tenant.AuditEntry
		err = tenant.EachAudit(t.Context(), b.pool, "project_a", tt.filter, func(e tenant.AuditEntry) error {
			exported = append(exported, e)
			return nil
		})
		if err != nil || cmp.Diff(tt.want, subjects(exported)) != "" {
			t.Errorf("%s: EachAudit gives %v, %v, want %v", tt.name, subjects(exported), err, tt.want)
		}
	}
}

func TestEachAudit_StopsAtTheCallersError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 3 {
		b.audit(t, tenant.CLI("root").In("project_a"), "x.y", "x", fmt.Sprint(i), nil)
	}
	boom, seen := errors.New("client went away"), 0
	err := tenant.EachAudit(t.Context(), b.pool, "project_a", tenant.AuditFilter{}, func(tenant.AuditEntry) error {
		seen++
		return boom
	})
	if err != boom || seen != 1 {
		t.Errorf("EachAudit = %v after %d entries, want the caller's error after 1", err, seen)
	}
}

func TestListAudit_PagesBothWays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 7 {
		b.audit(t, tenant.CLI("root").In("project_a"), "x.y", "x", fmt.Sprint(i), nil)
		b.audit(t, tenant.CLI("root").In("project_b"), "x.y", "x", "foreign", nil)
	}
	list := func(cursor string) store.List[tenant.AuditEntry] {
		page, err := tenant.ListAudit(t.Context(), b.pool, "project_a", tenant.AuditFilter{Action: "x.y"}, store.Page{Limit: 3, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	one := list("")
	two := list(one.Next)
	three := list(two.Next)
	got := slices.Concat(subjects(one.Rows), subjects(two.Rows), subjects(three.Rows))
	if diff := cmp.Diff([]string{"6", "5", "4", "3", "2", "1", "0"}, got); diff != "" || one.Prev != "" || three.Next != "" {
		t.Errorf("three pages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(two.Rows, list(three.Prev).Rows); diff != "" {
		t.Errorf("the way back (-want +got):\n%s", diff)
	}
	_, err := tenant.ListAudit(t.Context(), b.pool, "project_a", tenant.AuditFilter{}, store.Page{Cursor: "nonsense"})
	wantInvalid(t, err, "cursor")
}

func TestListInstallationAudit_IsForAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, owner := b.project(t, "acme")
	_, err := tenant.ListInstallationAudit(t.Context(), b.pool, owner, tenant.AuditFilter{}, store.Page{})
	wantError(t, "owner", err, tenant.ErrForbidden)
	list, err := tenant.ListInstallationAudit(t.Context(), b.pool, b.admin(t, "admin@acme.example"), tenant.AuditFilter{}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range list.Rows {
		actions = append(actions, e.Action)
	}
	if diff := cmp.Diff([]string{"user.create", "project.create", "user.create"}, actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

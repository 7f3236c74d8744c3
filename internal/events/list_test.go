package events

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
)

func TestListEvents_PagesBothWaysWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []string
	for i := range 3 { // Each batch shares one instant, so that the sequence has to break ties.
		var batch []New
		for j := range 5 {
			id := fmt.Sprintf("%d-%d", i, j)
			batch, want = append(batch, newOrder(id)), append(want, id)
		}
		if _, err := PublishBatch(b.ctx, b.pool, b.project, batch); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(want)

	var forth, back []string
	page := store.Page{Limit: 4}
	var last store.List[Event]
	for {
		last = b.list(t, Filter{}, page)
		forth = append(forth, ids(last.Rows)...)
		if last.Next == "" {
			break
		}
		page.Cursor = last.Next
	}
	if diff := cmp.Diff(want, forth); diff != "" {
		t.Errorf("newest to oldest (-want +got):\n%s", diff)
	}
	back = ids(last.Rows)
	for last.Prev != "" {
		page.Cursor = last.Prev
		last = b.list(t, Filter{}, page)
		back = append(ids(last.Rows), back...)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("and back again (-want +got):\n%s", diff)
	}
}

func TestListEvents_Filters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for id, change := range map[string]func(*New){
		"order_1": func(*New) {},
		"order_2": func(n *New) { n.Subscriber = "acme" },
		"ordes":   func(n *New) { n.Type = "order.paid" },
		"Order_3": func(*New) {},
	} {
		if _, err := Publish(b.ctx, b.pool, b.project, changed(newOrder(id), change)); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i, id := range []string{"order_1", "order_2", "ordes", "Order_3"} {
		b.exec(t, `update events set created_at = $1 where id = $2`, at.Add(time.Duration(i)*time.Hour), id)
	}
	b.exec(t, `update event_outbox set poisoned_at = now() where event_id = 'ordes'`)

	tests := map[string]struct {
		filter Filter
		want   []string
	}{
		"none":              {Filter{}, []string{"Order_3", "ordes", "order_2", "order_1"}},
		"type":              {Filter{Type: "order.paid"}, []string{"ordes"}},
		"subscriber":        {Filter{Subscriber: "acme"}, []string{"order_2"}},
		"since, inclusive":  {Filter{Since: at.Add(2 * time.Hour)}, []string{"Order_3", "ordes"}},
		"until, exclusive":  {Filter{Until: at.Add(2 * time.Hour)}, []string{"order_2", "order_1"}},
		"start of an id":    {Filter{IDPrefix: "order_"}, []string{"order_2", "order_1"}},
		"a letter of ids":   {Filter{IDPrefix: "o"}, []string{"ordes", "order_2", "order_1"}},
		"a whole id":        {Filter{IDPrefix: "order_1"}, []string{"order_1"}},
		"no id starts so":   {Filter{IDPrefix: "%"}, nil},
		"poisoned":          {Filter{Poisoned: true}, []string{"ordes"}},
		"all at once":       {Filter{Type: "order.created", Subscriber: "acme", Since: at, Until: at.Add(5 * time.Hour), IDPrefix: "order"}, []string{"order_2"}},
		"nothing like that": {Filter{Type: "order.created", Poisoned: true}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ids(b.list(t, test.filter, store.Page{}).Rows)); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListEvents_LeavesOutPayloadsAndNamesOfSkippedEndpoints(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	b.exec(t, `insert into event_outcomes select seq, now(), now(), 0, '{"counts":{"disabled":2},"endpoints":[{"id":"endpoint_1","reason":"disabled"}]}' from events`)
	listed := b.list(t, Filter{}, store.Page{}).Rows[0]
	if listed.Data != nil || listed.DataBytes != len(`{"order":1}`) {
		t.Errorf("listed %d bytes of payload with a size of %d", len(listed.Data), listed.DataBytes)
	}
	if diff := cmp.Diff(Skipped{Counts: map[string]int{"disabled": 2}}, listed.Skipped); diff != "" {
		t.Errorf("skipped in a list (-want +got):\n%s", diff)
	}
	read, err := EventByID(b.ctx, b.pool, b.project, "x")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]SkippedEndpoint{{ID: "endpoint_1", Reason: "disabled"}}, read.Skipped.Endpoints); diff != "" {
		t.Errorf("skipped of one event (-want +got):\n%s", diff)
	}
}

func TestListEvents_RefusesAForeignCursor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var invalid *store.InvalidError
	if _, err := ListEvents(b.ctx, b.pool, b.project, Filter{}, store.Page{Cursor: "nonsense"}); !errors.As(err, &invalid) {
		t.Errorf("list: %v, want the cursor refused", err)
	}
}

func TestListEvents_ReadsAnIndexInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into events (project_id, id, type, data, created_at)
		select $1, 'event_' || n, 'order.created', '1', now() - n * interval '1 second' from generate_series(1, 20000) n`, b.project)
	b.exec(t, `analyze events`)
	tests := map[string]struct {
		filter Filter
		index  string
	}{
		"no filter":      {Filter{}, "events_project_idx"},
		"period":         {Filter{Until: time.Now().Add(-time.Hour)}, "events_project_idx"},
		"poisoned":       {Filter{Poisoned: true}, "event_outbox_poisoned_idx"},
		"start of an id": {Filter{IDPrefix: "event_1234"}, "events_id_key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k, err := store.KeysetOf[position](store.Page{})
			if err != nil {
				t.Fatal(err)
			}
			sql, args := listStatement(b.project, test.filter, k)
			rows, err := b.pool.Query(b.ctx, "explain "+sql, args)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(lines, "\n")
			if !strings.Contains(plan, test.index) || strings.Contains(plan, "Seq Scan") {
				t.Errorf("plan does not use %s:\n%s", test.index, plan)
			}
		})
	}
}

func TestEvents_OfAnotherProjectAreNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	foreign := b
	foreign.project = b.newProject(t)
	if _, err := EventByID(b.ctx, b.pool, foreign.project, "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("EventByID: %v, want not found", err)
	}
	if _, err := PayloadByID(b.ctx, b.pool, foreign.project, "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("PayloadByID: %v, want not found", err)
	}
	if rows := foreign.list(t, Filter{IDPrefix: "x"}, store.Page{}).Rows; len(rows) != 0 {
		t.Errorf("the list has %v, want nothing", ids(rows))
	}
}

func (b bundle) list(t *testing.T, f Filter, page store.Page) store.List[Event] {
	t.Helper()
	list, err := ListEvents(b.ctx, b.pool, b.project, f, page)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func ids(events []Event) []string {
	var list []string
	for _, e := range events {
		list = append(list, e.ID)
	}
	return list
}

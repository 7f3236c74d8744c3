package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"entrega/internal/store"
)

func TestSQLDoor_RefusesWhatPublishRefusesInTheSameWords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := map[string]func(*New){
		"no type":              func(n *New) { n.Type = "" },
		"type with a space":    func(n *New) { n.Type = "order created" },
		"type with a line end": func(n *New) { n.Type = "order\n" },
		"type too long":        func(n *New) { n.Type = strings.Repeat("a", 129) },
		"no data":              func(n *New) { n.Data = nil },
		"data too large":       func(n *New) { n.Data = sized(MaxDataBytes + 1) },
		"id with a space":      func(n *New) { n.ID = "a b" },
		"id too long":          func(n *New) { n.ID = strings.Repeat("a", 129) },
		"id with a line end":   func(n *New) { n.ID = "a\n" },
		"subscriber too long":  func(n *New) { n.Subscriber = strings.Repeat("é", 129) },
		"subscriber with DEL":  func(n *New) { n.Subscriber = "a\x7f" },
		"subscriber with TAB":  func(n *New) { n.Subscriber = "a\t" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			n := changed(newOrder("x"), change)
			var invalid *store.InvalidError
			if _, err := Publish(b.ctx, b.pool, b.project, n); !errors.As(err, &invalid) {
				t.Fatalf("Publish: %v, want it refused", err)
			}
			_, err := b.sqlPublish(n)
			var pgErr *pgconn.PgError
			if !errors.As(err, &pgErr) || pgErr.Code != "23514" {
				t.Fatalf("entrega.publish: %v, want a check violation", err)
			}
			if want := invalid.Fields[0].Field + ": " + invalid.Fields[0].Sentence; pgErr.Message != want {
				t.Errorf("entrega.publish says %q, Publish says %q", pgErr.Message, want)
			}
		})
	}
}

func TestSQLDoor_TakesWhatPublishTakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := map[string]func(*New){
		"longest id":        func(n *New) { n.ID = strings.Repeat("a", 128) },
		"every sign":        func(n *New) { n.ID = "Az09._:-" },
		"longest type":      func(n *New) { n.ID, n.Type = "t", strings.Repeat("a", 128) },
		"subscriber":        func(n *New) { n.ID, n.Subscriber = "s", strings.Repeat("é", 128) },
		"largest data":      func(n *New) { n.ID, n.Data = "d", sized(MaxDataBytes) },
		"type with hyphens": func(n *New) { n.ID, n.Type = "h", "order.line-item.created" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			n := changed(newOrder("x"), change)
			id, err := b.sqlPublish(n)
			if err != nil {
				t.Fatalf("entrega.publish: %v", err)
			}
			if id != n.ID {
				t.Errorf("entrega.publish answers %q, want %q", id, n.ID)
			}
			published, err := Publish(b.ctx, b.pool, b.project, n)
			if err != nil || !published.Duplicate {
				t.Errorf("the same by Publish: %+v, %v, want a duplicate", published, err)
			}
		})
	}
}

func TestSQLDoor_AnswersTheFirstIDOrRaises(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	if id, err := b.sqlPublish(newOrder("x")); err != nil || id != "x" {
		t.Errorf("the same content: %q, %v, want x", id, err)
	}
	full := changed(newOrder("y"), func(n *New) { n.Metadata = map[string]string{"a": "1"} })
	if _, err := Publish(b.ctx, b.pool, b.project, full); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]New{
		"other data":       changed(newOrder("x"), func(n *New) { n.Data = []byte("2") }),
		"other subscriber": changed(newOrder("x"), func(n *New) { n.Subscriber = "acme" }),
		"other metadata":   newOrder("y"),
	} {
		if _, err := b.sqlPublish(n); !store.IsUnique(err, "") {
			t.Errorf("%s: %v, want a unique violation", name, err)
		}
	}
}

func TestSQLDoor_NamesAnUnknownProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project = "project_none"
	var pgErr *pgconn.PgError
	if _, err := b.sqlPublish(newOrder("")); !errors.As(err, &pgErr) || !strings.HasPrefix(pgErr.Message, "project: ") {
		t.Errorf("entrega.publish: %v, want a sentence about the project", err)
	}
}

func TestSQLDoor_MakesATypeID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := store.NewID("event")
	id, err := b.sqlPublish(newOrder(""))
	if err != nil {
		t.Fatal(err)
	}
	if len(id) != len(before) || !strings.HasPrefix(id, before[:len("event_01")]) {
		t.Errorf("entrega.publish made %q, want an id like %q", id, before)
	}
}

func TestSQLDoor_RolledBackTransactionPublishesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	undo := errors.New("undo")
	err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		var id string
		if err := tx.QueryRow(b.ctx, `select entrega.publish($1, 'order.created', '{}')`, b.project).Scan(&id); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	if n := scan[int](t, b, `select count(*) from events`); n != 0 {
		t.Errorf("%d events are stored, want none", n)
	}
}

func TestSQLDoor_NeedsNoRightOnTheTables(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := pgx.Identifier{"app_" + store.NewID("role")}.Sanitize()
	b.exec(t, `create role `+role)
	defer b.exec(t, `drop owned by `+role+`; drop role `+role)
	b.exec(t, `grant usage on schema entrega to `+role)
	var id string
	err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(b.ctx, `set local role `+role+`; set local search_path = pg_temp`); err != nil {
			return err
		}
		return tx.QueryRow(b.ctx, `select entrega.publish($1, 'order.created', '{}')`, b.project).Scan(&id)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EventByID(b.ctx, b.pool, b.project, id); err != nil {
		t.Errorf("what the application published: %v", err)
	}
}

// sqlPublish publishes what the SQL door can express of n.
func (b bundle) sqlPublish(n New) (id string, err error) {
	var data *string
	if n.Data != nil {
		text := string(n.Data)
		data = &text
	}
	err = b.pool.QueryRow(b.ctx, `select entrega.publish($1, $2, $3::text::json, $4, $5)`,
		b.project, n.Type, data, textOrNil(n.Subscriber), textOrNil(n.ID)).Scan(&id)
	return id, err
}

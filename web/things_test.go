package web_test

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/webhooks"
)

// things are one of each that a project can have, by the word that stands before :id in a route.
type things map[string]string

// newThings makes an endpoint and a disabled one, an event, a task that waits, a bulk action, an API key, a member and an access
// request, and names what every project shares: a periodic job, a queue and somebody who waits for a confirmation.
func (p *panel) newThings(project tenant.Project) things {
	p.t.Helper()
	endpoint := p.newEndpoint(project, webhooks.Settings{URL: "http://127.0.0.1:9/hooks/secret-path"})
	event := p.publish(project, events.New{Type: "order.created", Data: []byte(`{"orderId":"SO-10482"}`)})
	task := p.newDelivery(project, endpoint, event)
	owner := p.ownerOf(project)
	bulk, err := p.client.StartBulk(p.ctx, owner, project.ID, jobs.BulkRetry, jobs.TaskFilter{})
	if err != nil {
		p.t.Fatal(err)
	}
	key, _, err := tenant.CreateAPIKey(p.ctx, p.pool, owner, project.ID, tenant.NewAPIKey{Name: "backend", Scopes: tenant.Scopes()})
	if err != nil {
		p.t.Fatal(err)
	}
	member, asking := p.newUser(), p.newUser()
	if _, err := tenant.AddMember(p.ctx, p.pool, owner, project.ID, member.Email, tenant.RoleViewer); err != nil {
		p.t.Fatal(err)
	}
	request, err := tenant.RequestAccess(p.ctx, p.pool, tenant.ActorOf(asking), project.ID, "")
	if err != nil {
		p.t.Fatal(err)
	}
	gone := p.newEndpoint(project, webhooks.Settings{URL: "http://127.0.0.1:9/hooks/gone"})
	if _, err := p.endpoints.Disable(p.ctx, owner, gone.ID, ""); err != nil {
		p.t.Fatal(err)
	}
	waiting, queue := store.NewID("user"), store.NewID("queue")
	p.exec(`insert into users (id, email) values ($1, $1 || '@example.com')`, waiting)
	p.exec(`insert into river_queue (name, updated_at) values ($1, now())`, queue)
	p.exec(`update river_job set state = 'completed', finalized_at = now() where kind = $1 and state = 'available'`, p.periodic[0].Name)
	letter := p.newMail(project.ID, "sales@acme.example")
	suppression := store.NewID("suppression")
	p.exec(`insert into mail_suppressions (id, project_id, ref, reason) values ($1, $2, sha256($1::text::bytea), 'hard_bounce')`, suppression, project.ID)
	return things{"mail": letter, "suppressions": suppression, "account-mail": p.newMail("", "somebody@acme.example"), "endpoints": endpoint.ID, "events": event, "tasks": strconv.FormatInt(task, 10), "bulk": bulk.ID, "keys": key.ID,
		"members": member.ID, "requests": request.ID, "disabled": gone.ID, "alerts": p.newAlert(project), "periodic": p.periodic[0].Name, "queues": queue, "people": waiting}
}

// newMail stores a mail with HTML, of a project or of the installation. No worker sends it.
func (p *panel) newMail(project, to string) string {
	p.t.Helper()
	var id string
	err := store.InTx(p.ctx, p.pool, func(tx pgx.Tx) error {
		if project == "" {
			return p.mailer.ConfirmTx(p.ctx, tx, tenant.User{ID: store.NewID("user"), Email: to})
		}
		return nil
	})
	if err == nil && project != "" {
		_, err = p.mailer.Notify(p.ctx, tenant.CLI("test"), project, mailer.New{OrderID: "SO-1", To: to, Subject: "New order", Text: "A new order.", HTML: "<p>A new order.</p>"})
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.scan(&id, `select max(id) from notifications where project_id = $1`, project)
	return id
}

// newUser makes somebody who cannot log in.
func (p *panel) newUser() tenant.User {
	p.t.Helper()
	user, err := p.accounts.CreateUser(p.ctx, tenant.CLI("test"), tenant.NewUser{Email: store.NewID("user") + "@example.com"})
	if err != nil {
		p.t.Fatal(err)
	}
	return user
}

func (p *panel) publish(project tenant.Project, n events.New) string {
	p.t.Helper()
	published, err := events.Publish(p.ctx, p.pool, project.ID, n)
	if err != nil {
		p.t.Fatal(err)
	}
	return published.ID
}

// newDelivery queues a delivery as the fan-out does. No worker takes it unless the test starts one.
func (p *panel) newDelivery(project tenant.Project, e webhooks.Endpoint, event string) int64 {
	p.t.Helper()
	var id int64
	err := store.InTx(p.ctx, p.pool, func(tx pgx.Tx) error {
		var err error
		id, err = jobs.InsertTx(p.ctx, p.client, tx, webhooks.Deliver,
			webhooks.DeliverArgs{ProjectID: project.ID, EventID: event, EndpointID: e.ID},
			jobs.Insert{ProjectID: project.ID, EndpointID: e.ID, EventID: event, Label: map[string]string{"event_type": "order.created", "host": "127.0.0.1:9"}})
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// fill puts a project and its things into a route's path. what is the kind of thing that :id names, "" for none.
func fill(path, project string, all things) (filled, what string) {
	if before, _, ok := strings.Cut(path, "/:id"); ok {
		for segment := range strings.SplitSeq(before, "/") {
			if !strings.HasPrefix(segment, ":") {
				what = segment
			}
		}
	}
	filled = strings.NewReplacer(":project", project, ":kind", "webhook.deliver", ":profile", "standard", ":token", "spent", ":id", all[what]).Replace(path)
	return filled, what
}

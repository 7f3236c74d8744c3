package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

const (
	marketOwner = "mara@acme.example"
	// marketDay is how far back the stream of events goes, a little more than the pages show.
	marketDay = 25 * time.Hour
	// marketScript is the time before now that is scripted.
	marketScript = 10 * time.Minute
	// marketRate is how many events the busiest minute brings.
	marketRate = 9
)

// The receivers of the market by host. The first two take everything of their types, the others are sellers' own.
const (
	fulfilment = "fulfilment.acme.example"
	ledger     = "ledger.acme.example"
	northwind  = "hooks.northwind.example"
	lumen      = "api.lumen.example"
	kestrel    = "hooks.kestrel.example"
	tern       = "hooks.tern.example"
	partner    = "old.partner.example"
)

// market is the project on the pictures: a market place that tells its sellers, and its own systems, about orders.
type market struct {
	*installation
	app      *app
	filling  *filling
	project  *seedProject
	receiver map[string]*seedEndpoint
	rows     *seedRows
	// shown is the task with several attempts.
	shown int64
}

// pages are those that are pictured.
func (m *market) pages() []panelPage {
	return []panelPage{
		{"overview", views.OverviewURL(m.project.id)}, {"tasks", views.TasksURL(m.project.id, views.TaskFilter{})},
		{"task", views.TaskURL(m.project.id, strconv.FormatInt(m.shown, 10))}, {"endpoint", views.EndpointURL(m.project.id, m.receiver[northwind].id)},
	}
}

// fill makes the project and its past. What happened last comes at the end, by the clock of then, for filling takes a while.
func (m *market) fill(ctx context.Context, owner string) error {
	now := time.Now().UTC()
	f := &filling{options: seedOptions{tasks: math.MaxInt}, pool: m.app.db.pool, endpoints: m.app.endpoints, random: rand.New(rand.NewPCG(3, 4)), now: now, since: now.Add(-90 * 24 * time.Hour)}
	m.filling, m.rows = f, &seedRows{}
	if err := m.seedUpTo(ctx, now); err != nil {
		return err
	}
	if err := m.open(ctx, owner); err != nil {
		return err
	}
	if err := m.live(ctx, append(m.partnersEnd(), m.stream()...)); err != nil {
		return err
	}
	if err := m.seedUpTo(ctx, time.Now().UTC()); err != nil {
		return err
	}
	if err := m.wait(ctx); err != nil {
		return err
	}
	if err := m.live(ctx, m.script()); err != nil {
		return err
	}
	if err := f.finish(ctx); err != nil {
		return err
	}
	return m.app.scanner.Scan(ctx)
}

// seedUpTo lets the tasks that are made from now on live up to an instant.
func (m *market) seedUpTo(ctx context.Context, now time.Time) (err error) {
	m.filling.now = now
	m.filling.seeder, err = jobs.NewSeeder(ctx, jobs.SeederOptions{Client: m.app.client, Pool: m.filling.pool, Since: now.Add(-16 * 24 * time.Hour), Now: now})
	return err
}

// live stores what happens, in its order.
func (m *market) live(ctx context.Context, all []happening) error {
	slices.SortFunc(all, func(a, b happening) int { return a.at.Compare(b.at) })
	for _, h := range all {
		if err := m.happen(ctx, h); err != nil {
			return err
		}
		if len(m.rows.tasks) > seedBatch {
			if err := m.store(ctx); err != nil {
				return err
			}
		}
	}
	return m.store(ctx)
}

func (m *market) store(ctx context.Context) error {
	err := m.filling.write(ctx, m.rows)
	m.rows = &seedRows{}
	return err
}

// open makes the project with its receivers, in the condition that they are in now.
func (m *market) open(ctx context.Context, owner string) error {
	f := m.filling
	created, err := tenant.CreateProject(ctx, f.pool, cli(), tenant.NewProject{Name: "Acme Market", OwnerID: owner})
	if err != nil {
		return err
	}
	m.project = &seedProject{id: created.ID}
	disabled := f.now.Add(-9 * 24 * time.Hour).Truncate(time.Hour).Add(14 * time.Minute)
	m.project.endpoints = []*seedEndpoint{
		{host: fulfilment, types: []string{"order.created", "order.cancelled", "order.refunded"}, index: 3},
		{host: ledger, types: []string{"invoice.paid", "order.refunded"}, index: 3},
		{host: northwind, subscriber: "northwind", index: 1, failingSince: f.now.Add(-42 * time.Minute)},
		{host: lumen, subscriber: "lumen", index: 2},
		{host: kestrel, subscriber: "kestrel", index: 3},
		{host: tern, subscriber: "tern", index: 1},
		{host: partner, subscriber: "partner", index: 1, failingSince: disabled.Add(-5 * 24 * time.Hour), disabledAt: disabled},
	}
	m.receiver = map[string]*seedEndpoint{}
	for _, e := range m.project.endpoints {
		m.receiver[e.host] = e
	}
	if err := f.storeEndpoints(ctx, m.project); err != nil {
		return err
	}
	if _, err := f.pool.Exec(ctx, `update endpoint_secrets set created_at = $1`, f.since); err != nil {
		return fmt.Errorf("age the secrets: %w", err)
	}
	return nil
}

// wait pauses the lane of a receiver that has just asked for it.
func (m *market) wait(ctx context.Context) error {
	_, err := m.filling.pool.Exec(ctx, `update endpoint_lanes set pause_until = $2 where endpoint_id = $1`, m.receiver[lumen].id, m.filling.now.Add(108*time.Second))
	if err != nil {
		return fmt.Errorf("let a lane wait: %w", err)
	}
	return nil
}

// reply is how a receiver answers one attempt. An empty one is a 200.
type reply struct {
	seedFailure
	// retryAfter is the header of that name, and permanent the reason for which nothing more is tried.
	retryAfter, permanent, body string
}

var (
	says500  = reply{seedFailure: seedFailures[0], body: `{"error":"could not reserve stock"}`}
	says502  = reply{seedFailure: seedFailures[2], body: "<h1>502 Bad Gateway</h1>"}
	says503  = reply{seedFailure: seedFailure{"server", 503, egress.HttpError, "", "The receiver answered 503 Service Unavailable.", 408 * time.Millisecond}, retryAfter: "soon", body: "<h1>upstream unavailable</h1>"}
	timesOut = reply{seedFailure: seedFailures[1]}
	says429  = reply{seedFailure: seedThrottled, retryAfter: "120", body: `{"error":"slow down"}`}
	says422  = reply{seedFailure: seedRefused, permanent: jobs.ReasonRejected, body: `{"error":"unknown field: colour"}`}
	refuses  = reply{seedFailure: seedFailures[3]}
	isGone   = reply{seedFailure: seedDisabled, permanent: jobs.ReasonEndpointDisabled}
)

// happening is one event, with what its receivers do about it.
type happening struct {
	at     time.Time
	typ    string
	seller string
	// replies are what the receivers answer, attempt by attempt; all who are not named take it at once.
	replies map[string][]reply
	// waits, runs and cancelled are about the seller's own delivery; shown marks it as the one to picture. The fan-out of a quiet one
	// is left out, for there is room for few rows.
	waits, runs, cancelled, shown, quiet bool
}

// script is what happened in the last ten minutes, and what the failing receiver had before, so that the newest tasks show
// every state.
func (m *market) script() []happening {
	now := m.filling.now
	ago := func(d time.Duration, typ, seller string, replies ...reply) happening {
		return happening{at: now.Add(-d), typ: typ, seller: seller, replies: map[string][]reply{hostOf(seller): replies}, quiet: true}
	}
	runs := ago(2*time.Second, "invoice.paid", "kestrel")
	runs.runs, runs.quiet = true, false
	waits := ago(2*time.Minute+20*time.Second, "catalog.synced", "northwind")
	waits.waits = true
	stopped := ago(8*time.Minute+12*time.Second, "catalog.synced", "tern", says502, says502, says502)
	stopped.cancelled = true
	shown := ago(41*time.Minute, "order.created", "northwind", says500, timesOut, says502, says503)
	shown.shown = true
	return []happening{
		runs,
		ago(31*time.Second, "order.created", "lumen", says429),
		ago(72*time.Second, "catalog.synced", "northwind", says500, says503),
		waits,
		ago(4*time.Minute+2*time.Second, "catalog.synced", "tern", says422),
		ago(6*time.Minute+8*time.Second, "invoice.paid", "tern", says502),
		stopped,
		ago(9*time.Minute+20*time.Second, "order.created", "northwind", says500, timesOut, says503),
		ago(36*time.Minute, "order.refunded", "northwind", timesOut, says502, says503, says502),
		ago(40*time.Minute, "order.created", "northwind", says500, timesOut, says503, says502),
		shown,
	}
}

// stream is the traffic of a day: fewer orders at night, a bad spell of the own fulfilment, and a release of a seller that
// refuses what it should take.
func (m *market) stream() []happening {
	f := m.filling
	types := []string{"order.created", "order.created", "order.created", "invoice.paid", "invoice.paid", "order.cancelled", "order.refunded", "catalog.synced"}
	sellers := []string{"northwind", "lumen", "lumen", "kestrel", "kestrel", "kestrel", "tern", "tern", "partner"}
	var all []happening
	for age := marketDay; age > marketScript; {
		hours := age.Hours()
		share := 0.62 + 0.38*math.Cos((hours-4)/24*2*math.Pi)
		age -= time.Duration(f.random.ExpFloat64() / (marketRate * share) * float64(time.Minute))
		h := happening{at: f.now.Add(-age), typ: types[f.random.IntN(len(types))], seller: sellers[f.random.IntN(len(sellers))], replies: map[string][]reply{}}
		lot := f.random.IntN(100)
		switch {
		case hours > 6.5 && hours < 9 && lot < 55:
			h.replies[fulfilment] = slices.Repeat([]reply{says502}, 1+lot%2)
		case hours > 5.2 && hours < 7.4 && h.seller == "tern" && lot < 60:
			h.replies[tern] = []reply{says422}
		case lot < 3:
			h.replies[cmp.Or(hostOf(h.seller), ledger)] = []reply{says502}
		}
		h.waits = h.seller == "northwind" && age < 41*time.Minute
		all = append(all, h)
	}
	return all
}

// hostOf is the receiver of a seller's own.
func hostOf(seller string) string {
	return map[string]string{"northwind": northwind, "lumen": lumen, "kestrel": kestrel, "tern": tern}[seller]
}

// partnersEnd is how the old partner came to be disabled.
func (m *market) partnersEnd() []happening {
	e := m.receiver[partner]
	var all []happening
	for at := e.failingSince; at.Before(e.disabledAt); at = at.Add(55 * time.Minute) {
		all = append(all, happening{at: at, typ: "order.created", seller: "partner", replies: map[string][]reply{partner: {refuses, refuses, refuses, isGone}}})
	}
	return all
}

// happen stores an event, its fan-out and its deliveries.
func (m *market) happen(ctx context.Context, h happening) error {
	f := m.filling
	ev := seedEvent{project: m.project.id, id: idAt("event", h.at, f.random), typ: h.typ, subscriber: h.seller, at: h.at, data: marketPayload(f.random, h.typ)}
	if !h.quiet {
		if err := m.fanOut(ctx, ev); err != nil {
			return err
		}
	}
	deliveries := 0
	for _, e := range m.project.endpoints {
		switch {
		case !e.takes(ev.typ), e.subscriber != "" && e.subscriber != h.seller:
		case !e.disabledAt.IsZero() && h.at.After(e.disabledAt):
			m.rows.missed = append(m.rows.missed, []any{e.id, m.project.id, ev.id})
		default:
			deliveries++
			if err := m.deliver(ctx, h, e, ev); err != nil {
				return err
			}
		}
	}
	f.addEvent(m.rows, ev)
	m.rows.outcomes = append(m.rows.outcomes, seedOutcome{seedEvent: ev, deliveries: deliveries})
	return nil
}

func (m *market) fanOut(ctx context.Context, ev seedEvent) error {
	task, err := jobs.NewSeed(ctx, m.filling.seeder, events.Fanout, events.FanoutArgs{ProjectID: m.project.id, EventIDs: []string{ev.id}},
		jobs.Insert{ProjectID: m.project.id, Label: map[string]string{"subject": ev.id}}, ev.at)
	if err != nil {
		return err
	}
	task.Play = func(_ int, at time.Time) (jobs.Evidence, error) {
		return jobs.Evidence{StartedAt: at, FinishedAt: at.Add(6 * time.Millisecond)}, nil
	}
	m.filling.add(m.rows, m.project, task)
	return nil
}

func marketPayload(r *rand.Rand, typ string) []byte {
	order := 10_000 + r.IntN(89_999)
	switch typ {
	case "catalog.synced":
		return fmt.Appendf(nil, `{"catalog":"spring","products":%d}`, 200+r.IntN(900))
	case "invoice.paid":
		return fmt.Appendf(nil, `{"invoice_id":"IN-%d","order_id":"SO-%d","total":"%d.90"}`, order+400, order, 12+r.IntN(300))
	default:
		return fmt.Appendf(nil, `{"order_id":"SO-%d","total":"%d.90","currency":"EUR"}`, order, 12+r.IntN(300))
	}
}

func (m *market) deliver(ctx context.Context, h happening, e *seedEndpoint, ev seedEvent) error {
	f, own := m.filling, e.subscriber != ""
	waits := own && h.waits
	task, err := jobs.NewSeed(ctx, f.seeder, webhooks.Deliver, webhooks.DeliverArgs{ProjectID: m.project.id, EventID: ev.id, EndpointID: e.id},
		jobs.Insert{ProjectID: m.project.id, EndpointID: e.id, EventID: ev.id, Pending: waits, Label: map[string]string{"event_type": ev.typ, "host": e.host}},
		ev.at.Add(12*time.Millisecond))
	if err != nil {
		return err
	}
	switch {
	case waits:
	case own && h.runs:
		task.Running = true
	default:
		task.Play = m.play(e, ev, h.replies[e.host])
	}
	if own && h.cancelled {
		task.CancelledAt = h.at.Add(7 * time.Minute)
	}
	if own && h.shown {
		m.shown = task.ID()
	}
	f.add(m.rows, m.project, task)
	return nil
}

// play answers attempt by attempt, and well once the replies have run out.
func (m *market) play(e *seedEndpoint, ev seedEvent, replies []reply) func(int, time.Time) (jobs.Evidence, error) {
	r := m.filling.random
	p := &play{endpoint: e, event: ev, random: rand.New(rand.NewPCG(r.Uint64(), r.Uint64())), excerpts: true}
	n := 0
	return func(_ int, at time.Time) (jobs.Evidence, error) {
		if n == len(replies) {
			took := 14*time.Millisecond + time.Duration(p.random.ExpFloat64()*float64(18*time.Millisecond))
			out := p.exchange(at, took, http.StatusOK)
			out.ResponseClass = "success"
			return out, nil
		}
		n++
		return p.reply(at, replies[n-1])
	}
}

func (p *play) reply(at time.Time, r reply) (jobs.Evidence, error) {
	ev, err := p.failed(at, r.seedFailure)
	ev.RetryAfter = jobs.ParseRetryAfter(r.retryAfter, ev.FinishedAt)
	if r.body != "" {
		sum := sha256.Sum256([]byte(r.body))
		ev.Response.Body, ev.Response.SHA256 = []byte(r.body), sum[:]
	}
	if r.retryAfter != "" {
		ev.Response.Header.Set("Retry-After", r.retryAfter)
	}
	switch {
	case r.permanent != "":
		return ev, jobs.Discard(err, r.permanent)
	case ev.RetryAfter.Usable():
		return ev, jobs.Snooze(ev.RetryAfter.Delay, jobs.ReasonRetryAfter)
	default:
		return ev, errors.Join(err)
	}
}

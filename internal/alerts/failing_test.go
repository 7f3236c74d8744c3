package alerts

import (
	"strings"
	"testing"
	"time"
)

// fail makes an endpoint one whose every attempt failed since an instant.
func (b *bundle) fail(endpoint string, since time.Time, inARow int) {
	b.t.Helper()
	b.exec(`update endpoint_lanes set failing_since = $2, failures_in_a_row = $3, last_failure_at = $4 where endpoint_id = $1`,
		endpoint, since, inARow, b.now)
}

func (b *bundle) succeed(endpoint string) {
	b.t.Helper()
	b.exec(`update endpoint_lanes set failing_since = null, failures_in_a_row = 0, last_success_at = $2 where endpoint_id = $1`, endpoint, b.now)
}

func TestFailing_AtHalfOfTheDisableRule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		endpointProfile, projectProfile *string
		failingFor                      time.Duration
		inARow                          int
		want                            string // the sentence; empty means no alert
	}{
		"standard before half":    {failingFor: 60*time.Hour - time.Second, inARow: 9},
		"standard at half":        {failingFor: 60 * time.Hour, inARow: 9, want: "It is disabled on "},
		"compact before half":     {endpointProfile: new("compact"), failingFor: 60 * time.Hour, inARow: 9},
		"compact at half":         {endpointProfile: new("compact"), failingFor: time.Hour, inARow: 10, want: "10 in a row. It is disabled after 20 failures in a row."},
		"the project's profile":   {projectProfile: new("compact"), failingFor: time.Hour, inARow: 10, want: "It is disabled after 20"},
		"the endpoint's wins":     {endpointProfile: new("standard"), projectProfile: new("compact"), failingFor: time.Hour, inARow: 10},
		"a profile that is gone":  {endpointProfile: new("vanished"), failingFor: 60 * time.Hour, inARow: 9, want: "It is disabled on "},
		"failed once, long since": {failingFor: 100 * time.Hour, inARow: 1, want: "1 in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://hooks.northwind.example/")
			b.exec(`update endpoints set profile = $2 where id = $1`, e, tc.endpointProfile)
			b.exec(`update projects set profile = coalesce($2, profile) where id = $1`, b.project, tc.projectProfile)
			since := b.now.Add(-tc.failingFor)
			b.fail(e, since, tc.inARow)
			b.look()
			if tc.want == "" {
				b.none(EndpointFailing)
				return
			}
			a := b.one(EndpointFailing)
			if !strings.HasPrefix(a.Sentence(), "hooks.northwind.example failed at every attempt since ") || !strings.Contains(a.Text, tc.want) {
				t.Errorf("the alert says %q, want %q in it", a.Sentence(), tc.want)
			}
			if a.Count != int64(tc.inARow) || !a.FirstAt.Equal(since) || !a.LastAt.Equal(b.now) || a.EndpointID != e || a.ProjectID != b.project {
				t.Errorf("the alert counts %d of %s in %s from %v to %v", a.Count, a.EndpointID, a.ProjectID, a.FirstAt, a.LastAt)
			}
		})
	}
}

func TestFailing_ResolvesItself(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(b *bundle, e string){
		"it works again": func(b *bundle, e string) { b.succeed(e) },
		"it was reactivated": func(b *bundle, e string) {
			b.exec(`update endpoint_lanes set failing_since = null where endpoint_id = $1`, e)
		},
		"it was disabled": func(b *bundle, e string) {
			b.exec(`update endpoints set disabled_at = now(), disabled_reason = 'failing' where id = $1`, e)
		},
		"its endpoint was deleted":                   func(b *bundle, e string) { b.exec(`update endpoints set deleted_at = now() where id = $1`, e) },
		"it is no longer half way to being disabled": func(b *bundle, e string) { b.fail(e, b.now.Add(-time.Hour), 1) },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://hooks.northwind.example/")
			b.fail(e, b.now.Add(-100*time.Hour), 12)
			b.look()
			b.now = b.now.Add(5 * time.Second)
			change(b, e)
			b.look()
			b.resolvedItself(EndpointFailing, why)
		})
	}
}

func TestFailing_ResolvedByHandStaysSoForTheSameRowOfFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	since := b.now.Add(-100 * time.Hour)
	b.fail(e, since, 12)
	b.look()
	b.resolveByHand(b.one(EndpointFailing))
	b.now = b.now.Add(time.Hour)
	b.fail(e, since, 13)
	b.look()
	if a := b.one(EndpointFailing); a.State != StateResolved {
		t.Fatalf("the alert is %s, want it resolved while the same row of failures lasts", a.State)
	}
	// It works, and then fails anew.
	b.succeed(e)
	b.look()
	if a := b.one(EndpointFailing); a.ResolvedBy != "ines@acme.example" || a.ResolvedWhy != "" {
		t.Errorf("the alert is resolved by %q: %q, want it left as the owner resolved it", a.ResolvedBy, a.ResolvedWhy)
	}
	b.now = b.now.Add(100 * time.Hour)
	b.fail(e, b.now.Add(-90*time.Hour), 9)
	b.look()
	if all := b.all(EndpointFailing); len(all) != 2 || all[1].State != StateOpen || all[1].Count != 9 {
		t.Errorf("the alerts are %+v, want a second, open, with 9", all)
	}
}

func TestFailing_ANewRowBetweenTwoScansIsNewToWhoeverResolvedTheLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.exec(`update endpoints set profile = 'compact' where id = $1`, e)
	b.fail(e, b.now.Add(-time.Hour), 12)
	b.look()
	b.resolveByHand(b.one(EndpointFailing))
	b.fail(e, b.now.Add(-time.Minute), 11)
	b.look()
	if all := b.all(EndpointFailing); len(all) != 2 || all[1].State != StateOpen {
		t.Errorf("the alerts are %+v, want a second, open", all)
	}
}

func TestFailing_WalksMoreEndpointsThanOnePassLooksAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const endpoints = walkBatch + 5
	b.exec(`insert into endpoints (id, project_id, url) select 'endpoint_' || to_char(n, 'FM00000'), $1, 'https://' || n || '.example/' from generate_series(1, $2) n`, b.project, endpoints)
	b.exec(`insert into endpoint_lanes (endpoint_id, project_id, failing_since, failures_in_a_row) select id, project_id, $1, 12 from endpoints`, b.now.Add(-100*time.Hour))
	b.look()
	b.look()
	if n := len(b.all(EndpointFailing)); n != endpoints {
		t.Errorf("after two scans %d alerts are open, want %d", n, endpoints)
	}
	b.exec(`update endpoint_lanes set failing_since = null`)
	for range 3 { // They are asked after in batches, too.
		b.look()
	}
	if n := scan[int](b, `select count(*) from alerts where state <> 'resolved'`); n != 0 {
		t.Errorf("after three scans %d alerts are left, want none", n)
	}
}

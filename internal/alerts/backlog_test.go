package alerts

import (
	"testing"
	"time"
)

// publish stores events that wait for their fan-out since an instant by the database's clock.
func (b *bundle) publish(project string, n int, ago time.Duration) {
	b.t.Helper()
	b.exec(`insert into events (project_id, id, type, data, created_at)
		select $1, 'event_' || gen_random_uuid(), 'order.created', '{}', now() - $3::interval from generate_series(1, $2)`, project, n, ago)
}

func (b *bundle) fanOut(leave int) {
	b.t.Helper()
	b.exec(`update event_outbox set fanned_out_at = now() where seq <= (select max(seq) from event_outbox) - $1 and fanned_out_at is null`, leave)
}

func TestBacklog_OverAThousandOrFiveMinutes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events int
		ago    time.Duration
		want   string
	}{
		"a thousand":           {events: 1000},
		"one more":             {events: 1001, want: "1,001 events wait for the fan-out, the oldest for a few seconds."},
		"young":                {events: 1, ago: 4 * time.Minute},
		"old":                  {events: 1, ago: 6 * time.Minute, want: "1 event waits for the fan-out, the oldest for 6 minutes."},
		"more than is counted": {events: 10_001, ago: time.Hour, want: "10,000 events or more wait for the fan-out, the oldest for 60 minutes."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.publish(b.project, tc.events, tc.ago)
			b.look()
			all := b.all(Backlog)
			if tc.want == "" {
				b.none(Backlog)
				return
			}
			if len(all) != 2 {
				t.Fatalf("there are %d alerts, want one of the installation and one of the project: %+v", len(all), all)
			}
			for _, a := range all {
				want := tc.want + " See that a node works and that the database keeps up."
				if a.ProjectID != "" {
					want = tc.want + " None is lost. If the number grows, ask an admin to look at the nodes."
				}
				if a.Sentence() != want || a.ProjectID != "" && a.ProjectID != b.project {
					t.Errorf("the alert of %q says %q, want %q", a.ProjectID, a.Sentence(), want)
				}
			}
		})
	}
}

func TestBacklog_NamesTheProjectsThatWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calm := b.newProject()
	b.publish(b.project, 1100, 0)
	b.publish(calm, 10, 0)
	b.look()
	projects := map[string]bool{}
	for _, a := range b.all(Backlog) {
		projects[a.ProjectID] = true
	}
	if len(projects) != 2 || !projects[""] || !projects[b.project] {
		t.Errorf("alerts are open for %v, want the installation and the project with 1,100", projects)
	}
}

func TestBacklog_ResolvesItselfAtHalf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(b.project, 1100, 0)
	b.look()
	opened := b.all(Backlog)
	b.fanOut(501)
	b.now = b.now.Add(time.Minute)
	b.look()
	for i, a := range b.all(Backlog) {
		if a.State != StateOpen || a.Count != 1 || !a.LastAt.Equal(opened[i].LastAt) {
			t.Errorf("with 501 waiting the alert is %s, counts %d until %v; want it open as it was", a.State, a.Count, a.LastAt)
		}
	}
	b.fanOut(500)
	b.look()
	for _, a := range b.all(Backlog) {
		if a.State != StateResolved || a.ResolvedWhy != "the outbox has drained" {
			t.Errorf("with 500 waiting the alert is %s: %q, want it resolved", a.State, a.ResolvedWhy)
		}
	}
}

func TestBacklog_ResolvedByHandComesBackOnlyAfterItHasDrained(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(b.project, 1100, 0)
	b.look()
	b.exec(`update alerts set state = 'resolved', resolved_at = now(), resolved_by = 'admin'`)
	b.publish(b.project, 1100, 0)
	b.look()
	if n := len(b.all(Backlog)); n != 2 {
		t.Fatalf("there are %d alerts, want the two that were resolved by hand", n)
	}
	b.fanOut(0)
	b.look()
	b.publish(b.project, 1100, 0)
	b.look()
	if n := scan[int](b, `select count(*) from alerts where kind = 'backlog' and state = 'open'`); n != 2 {
		t.Errorf("after a drain and another backlog %d alerts are open, want 2", n)
	}
}

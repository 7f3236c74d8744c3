package alerts

import (
	"strings"
	"testing"
	"time"

	"entrega/jobs"
)

// pend makes deliveries that wait for their lane since a while ago.
func (b *bundle) pend(endpoint string, n int, ago time.Duration) {
	b.t.Helper()
	for range n {
		b.insert(task{endpoint: endpoint, state: "pending", at: b.now.Add(-ago)})
	}
}

func TestSaturated_WhenAHealthyLaneIsTenMinutesBehind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ago  time.Duration
		set  string // of endpoints
		lane string // of endpoint_lanes
		want string
	}{
		"nine minutes":        {ago: 9 * time.Minute},
		"ten minutes":         {ago: 10 * time.Minute, want: "hooks.northwind.example works, yet 3 deliveries wait for their turn, the oldest for 10 minutes. Raise maxInFlight (now 1), if the receiver can take more at once."},
		"wide already":        {ago: 12 * time.Minute, set: "max_in_flight = 64", want: "It has 64 in flight, which is the most"},
		"with a rate":         {ago: 12 * time.Minute, set: "rate_per_second = 0.5", want: "Raise its rate limit (now 0.5 a second) or maxInFlight (now 1)"},
		"failing":             {ago: 12 * time.Minute, lane: "failing_since = now()"},
		"failed a while ago":  {ago: time.Hour, lane: "last_failure_at = now() - interval '9 minutes'"},
		"failed long ago":     {ago: time.Hour, lane: "last_failure_at = now() - interval '11 minutes'", want: "the oldest for 60 minutes"},
		"asked to wait":       {ago: time.Hour, lane: "pause_until = now() + interval '1 minute'"},
		"paused":              {ago: time.Hour, set: "paused_at = now()"},
		"disabled":            {ago: time.Hour, set: "disabled_at = now(), disabled_reason = 'manual'"},
		"deleted":             {ago: time.Hour, set: "deleted_at = now()"},
		"changed a while ago": {ago: time.Hour, set: "updated_at = now()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e, calm := b.newEndpoint("https://hooks.northwind.example/"), b.newEndpoint("https://api.lumen.example/")
			b.pend(e, 3, tc.ago)
			b.pend(calm, 3, time.Minute)
			if tc.set != "" {
				b.exec(`update endpoints set `+tc.set+` where id = $1`, e)
			}
			if tc.lane != "" {
				b.exec(`update endpoint_lanes set `+tc.lane+` where endpoint_id = $1`, e)
			}
			b.look()
			if tc.want == "" {
				b.none(LaneSaturated)
				return
			}
			a := b.one(LaneSaturated)
			if !strings.Contains(a.Sentence(), tc.want) || a.EndpointID != e {
				t.Errorf("the alert says %q, want %q in it", a.Sentence(), tc.want)
			}
			if tasks, ok := a.Tasks(); !ok || tasks.State != jobs.StatePending || tasks.EndpointID != e {
				t.Errorf("the alert leads to %+v, want what waits for the endpoint", tasks)
			}
		})
	}
}

func TestSaturated_ResolvesItself(t *testing.T) {
	t.Parallel()
	for why, sql := range map[string]string{
		"its lane has drained":                  `update river_job set scheduled_at = now() where state = 'pending' and endpoint_id = $1`,
		"it was paused":                         `update endpoints set paused_at = now() where id = $1`,
		"it was disabled":                       `update endpoints set disabled_at = now() where id = $1`,
		"its endpoint was deleted":              `update endpoints set deleted_at = now() where id = $1`,
		"it fails now, which is another matter": `update endpoint_lanes set failing_since = now() where endpoint_id = $1`,
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://hooks.northwind.example/")
			b.pend(e, 2, 12*time.Minute)
			b.look()
			b.exec(`update river_job set state = 'completed', finalized_at = now() where id = (select min(id) from river_job)`)
			b.exec(`update endpoints set max_in_flight = 4, updated_at = now() where id = $1`, e)
			b.look()
			if a := b.one(LaneSaturated); a.State != StateOpen || a.Count != 1 {
				t.Fatalf("while one still waits the alert is %s: %s", a.State, a.ResolvedWhy)
			}
			b.exec(sql, e)
			b.look()
			b.resolvedItself(LaneSaturated, why)
		})
	}
}

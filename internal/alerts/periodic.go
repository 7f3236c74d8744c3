package alerts

import (
	"context"

	"entrega/jobs"
)

// periodicFailures is how many runs in a row must fail.
const periodicFailures = 3

// scanPeriodic looks at the newest runs of every periodic job.
func scanPeriodic(ctx context.Context, p *pass) error {
	runs := map[string]jobs.PeriodicRun{}
	var keys []key
	var findings []finding
	for _, job := range p.periodic {
		run, ran, err := jobs.LastRun(ctx, p.tx, job)
		if err != nil {
			return err
		}
		if !ran {
			continue
		}
		runs[job.Name] = run
		if run.FailuresInARow >= periodicFailures {
			keys, findings = append(keys, key{subject: job.Name}), append(findings, periodicFinding(job.Name, run))
		}
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	for i, f := range findings {
		a, counting := unresolved(current, f.key)
		switch {
		case !counting:
		case !f.marker.After(a.Marker):
			findings[i].count, findings[i].last = a.Count, a.LastAt
		default: // The job layer counts up to ten in a row.
			findings[i].count = max(f.count, a.Count+1)
		}
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyNotPeriodic(runs))
}

// periodicFinding tells of a job that keeps failing. While a run is under way nothing new has failed, which the zero marker says.
func periodicFinding(name string, run jobs.PeriodicRun) finding {
	f := finding{key: key{subject: name}, about: name, count: int64(run.FailuresInARow), first: run.StartedAt, last: run.StartedAt}
	if run.State != jobs.StateRunning {
		f.last, f.marker = run.FinishedAt, run.FinishedAt
	}
	f.text = "failed at least " + number(periodicFailures) + " times in a row. See its last error under Periodic, and run it there once the cause is mended."
	return f
}

// whyNotPeriodic finds the jobs that succeeded, and those that are no more.
func (p *pass) whyNotPeriodic(runs map[string]jobs.PeriodicRun) func(context.Context, []Alert) (map[string]string, error) {
	names := map[string]bool{}
	for _, job := range p.periodic {
		names[job.Name] = true
	}
	return func(_ context.Context, alerts []Alert) (map[string]string, error) {
		why := map[string]string{}
		for _, a := range alerts {
			run, ran := runs[a.Subject]
			switch {
			case !names[a.Subject]:
				why[a.ID] = "there is no such job any more"
			case ran && run.FailuresInARow < periodicFailures:
				why[a.ID] = "its last run succeeded"
			}
		}
		return why, nil
	}
}

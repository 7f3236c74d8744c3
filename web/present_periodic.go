package web

import (
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

func presentPeriodic(l views.Layout, v *visit, all []jobs.Periodic, runs map[string]jobs.PeriodicRun, now time.Time) views.PeriodicProps {
	p := views.PeriodicProps{Layout: l}
	for _, job := range all {
		row := views.PeriodicRow{Name: job.Name, Does: job.About, Schedule: "every " + longTime(job.Every)}
		run, found := runs[job.Name]
		if found {
			presentRun(&row, v, job, run, now)
		}
		row.CanRun = v.can(tenant.PermAdmin) && !row.Running
		p.Rows = append(p.Rows, row)
	}
	return p
}

func presentRun(row *views.PeriodicRow, v *visit, job jobs.Periodic, run jobs.PeriodicRun, now time.Time) {
	row.LastAt, row.Running, row.FailedInARow = run.StartedAt, run.State == jobs.StateRunning, run.FailuresInARow
	if !run.FinishedAt.IsZero() {
		row.Took = run.FinishedAt.Sub(run.StartedAt)
	}
	if run.State == jobs.StateDiscarded {
		row.Failed = "An admin can see why."
		if v.can(tenant.PermAdmin) { // It may name tables and addresses of the installation.
			row.Failed = run.Error
		}
	}
	// The clock of the periods is the leader's, and starts anew with another one: this is right as long as there is none.
	if next := run.StartedAt.Add(job.Every); next.After(now) {
		row.NextAt = next
	}
}

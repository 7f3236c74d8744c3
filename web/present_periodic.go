package web

import (
	"strings"
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

func presentPeriodic(l views.Layout, v *visit, all []jobs.Periodic, runs map[string]jobs.PeriodicRun, leadsSince, now time.Time) views.PeriodicProps {
	p := views.PeriodicProps{Layout: l}
	for _, job := range all {
		row := views.PeriodicRow{Name: job.Name, Does: job.About, Schedule: "every " + strings.TrimPrefix(longTime(job.Every), "1 "), NextAt: job.NextAt(leadsSince, now)}
		run, found := runs[job.Name]
		if found {
			presentRun(&row, v, run)
		}
		row.CanRun = v.can(tenant.PermAdmin) && !row.Running
		p.Rows = append(p.Rows, row)
	}
	return p
}

func presentRun(row *views.PeriodicRow, v *visit, run jobs.PeriodicRun) {
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
}

package jobstest

import (
	_ "entrega/internal/events" // want `imports/direction: imports point down only, and internal/events stands above jobs/jobstest`
	_ "entrega/internal/store/storetest"
	_ "entrega/jobs"

	_ "github.com/riverqueue/river"
)

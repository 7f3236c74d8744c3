package events_test

import (
	_ "entrega/internal/events"
	_ "entrega/internal/store/storetest"
	_ "entrega/jobs/jobstest"
	_ "entrega/mailer" // want `imports/direction: imports point down only, and mailer stands above internal/events; move the code up`
)

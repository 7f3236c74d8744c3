package jobs

import (
	_ "entrega/internal/store"
	_ "entrega/internal/tenant"

	_ "github.com/riverqueue/river"
	_ "github.com/riverqueue/rivercontrib/otelriver"
)

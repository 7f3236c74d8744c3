package web_test

import (
	_ "entrega/internal/store/storetest"
	_ "entrega/web"

	_ "github.com/riverqueue/rivercontrib/otelriver" // want `imports/owner: only jobs imports github.com/riverqueue/rivercontrib/otelriver`
)

package web

import (
	_ "entrega/internal/alerts"
	_ "entrega/internal/egress"
	_ "entrega/internal/store/storetest" // want `imports/test-support: internal/store/storetest serves tests; import it from a _test.go file`
	_ "entrega/jobs"
	_ "entrega/views"
	_ "entrega/web/session"
	_ "entrega/webhooks"

	_ "github.com/danielgtaylor/huma/v2/adapters/humaecho"
	_ "github.com/labstack/echo/v4"
)

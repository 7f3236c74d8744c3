package events

import (
	_ "entrega/internal/tenant"
	_ "entrega/jobs"
)

package webhooks

import (
	_ "entrega/internal/egress"
	_ "entrega/internal/events"
	_ "entrega/internal/search" // want `imports/direction: webhooks and internal/search stand side by side and do not import each other`
	_ "entrega/jobs"
	_ "entrega/mailer" // want `imports/direction: webhooks and mailer stand side by side`

	_ "github.com/danielgtaylor/huma/v2/adapters/humaecho" // want `imports/owner: only web imports`
	_ "github.com/jackc/pgx/v5"
)

package alerts

import (
	_ "entrega/internal/unlisted" // want `imports/table: internal/alerts imports internal/unlisted, which has no level yet; add it to the table in internal/verify/imports/table.go`
)

package unlisted // want `imports/table: package internal/unlisted has no level yet; add it to the table in internal/verify/imports/table.go`

package views

import (
	_ "fmt"

	_ "entrega/static" // want `imports/leaf: views is a leaf and imports none of our packages, not even static; take the value as a parameter`

	_ "github.com/a-h/templ"
	_ "github.com/jackc/pgx/v5" // want `imports/views: views imports templ and the standard library only, not github.com/jackc/pgx/v5`
)

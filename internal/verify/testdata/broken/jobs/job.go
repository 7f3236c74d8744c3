// Package jobs does not compile.
package jobs

import _ "entrega/webhooks"

// Limit is a number.
var Limit int = "three"

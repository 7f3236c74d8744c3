package main

import (
	_ "entrega/internal/store" // want `imports/tool: internal/verify judges the other packages and imports none of them, not even internal/store`
	_ "entrega/internal/verify/tree"
)

func main() {}

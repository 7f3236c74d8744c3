package main

import (
	_ "entrega/internal/events"
	_ "entrega/internal/store"
	_ "entrega/internal/verify/tree" // want `imports/tool: internal/verify/tree checks the tree and is no part of the product`
	_ "entrega/jobs"
	_ "entrega/mailer"
	_ "entrega/static"
	_ "entrega/web"

	_ "github.com/labstack/echo/v4" // want `imports/owner: only web imports github.com/labstack/echo/v4`
	_ "github.com/riverqueue/river" // want `imports/owner: only jobs imports github.com/riverqueue/river, because .*; call a function of jobs instead`
)

func main() {}

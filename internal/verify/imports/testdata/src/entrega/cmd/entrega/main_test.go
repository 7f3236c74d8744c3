package main

import (
	_ "entrega/internal/store/storetest"
	_ "entrega/views"

	_ "github.com/labstack/echo/v4"
	_ "github.com/riverqueue/river"
)

package session

import _ "github.com/labstack/echo/v4"

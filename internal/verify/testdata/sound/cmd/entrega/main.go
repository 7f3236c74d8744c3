// Entrega delivers.
package main

import (
	"os"

	_ "entrega/webhooks"
)

func main() { os.Getenv("DATABASE_URL") }

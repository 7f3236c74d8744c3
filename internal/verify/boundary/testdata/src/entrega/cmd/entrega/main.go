package main

import (
	"context"
	"os"

	"github.com/jackc/pgx/v5"
)

func main() {
	os.Getenv("DATABASE_URL")
	var conn pgx.Conn
	conn.Begin(context.Background()) // want `boundary/begin`
}

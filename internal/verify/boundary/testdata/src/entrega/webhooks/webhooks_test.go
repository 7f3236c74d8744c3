package webhooks

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Tests interleave transactions by hand.
func TestBegin_Interleaved(t *testing.T) {
	var conn pgx.Conn
	conn.Begin(context.Background())
	os.Getenv("HOME")
}

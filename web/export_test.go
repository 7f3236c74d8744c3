package web

import (
	"time"

	"entrega/internal/tenant"
)

// Route is a line of the panel's table, for tests that walk it.
type Route struct {
	Method, Path string
	// Access is "anyone", "logged in", "in project" or "installation".
	Access string
	Needs  tenant.Permission
}

// Routes lists the panel's table.
func (s *Server) Routes() []Route {
	var all []Route
	for _, r := range s.routes() {
		word := map[access]string{anyone: "anyone", loggedIn: "logged in", inProject: "in project", installation: "installation"}[r.access]
		all = append(all, Route{Method: r.method, Path: r.path, Access: word, Needs: r.needs})
	}
	return all
}

// OwnPath is ownPath.
func OwnPath(raw string) bool {
	_, ok := ownPath(raw)
	return ok
}

// PlainCell is plainCell.
func PlainCell(s string) string { return plainCell(s) }

// BeatEvery changes the heartbeat of streams that open from now on.
func (s *Server) BeatEvery(d time.Duration) { s.heartbeat = d }

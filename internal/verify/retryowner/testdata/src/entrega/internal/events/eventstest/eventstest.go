package eventstest

import "net/http"

// Test support is compiled into tests only.
func Publish() {
	http.Post("", "", nil)
}

// Package egress is the door.
package egress

import "net/http"

// RoundTrip sends once.
func RoundTrip(request *http.Request) error {
	_, err := http.DefaultTransport.RoundTrip(request)
	return err
}

package mailer

import "net/http"

// A mail API needs its key; the door strips what would repeat the request.
func setKey(request *http.Request) {
	request.Header.Set("Idempotency-Key", "1")
}

func send(client *http.Client, request *http.Request) {
	client.Do(request) // want `retryowner/http-client`
}

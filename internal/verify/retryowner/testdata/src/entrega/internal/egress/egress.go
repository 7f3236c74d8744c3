package egress

import (
	"io"
	"net/http"
)

func send(client *http.Client, request *http.Request) {
	request.Header.Set("Idempotency-Key", "1")
	request.GetBody = nil
	client.Do(request)
}

func rewind(request *http.Request) {
	request.GetBody = func() (io.ReadCloser, error) { return nil, nil } // want `retryowner/get-body`
}

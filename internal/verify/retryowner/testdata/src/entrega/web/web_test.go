package web

import (
	"net/http"
	"testing"
)

// Tests call the product as anybody would.
func TestServe_Answers(t *testing.T) {
	request, _ := http.NewRequest("POST", "/v1/events", nil)
	request.Header.Set("Idempotency-Key", "1")
	request.GetBody = getBody
	http.DefaultClient.Do(request)
}

package web

import (
	"context"
	"net/http"

	"entrega/jobs"
)

// A panel handler may start what outlives the request.
func serve(ctx context.Context) context.Context {
	return context.Background()
}

// A job handler is one wherever it stands.
func work(job *jobs.Job[int]) context.Context {
	return context.Background() // want `retryowner/handler-context`
}

type sender interface {
	Get(string) (*http.Response, error)
}

func clients(client *http.Client, s sender, request *http.Request) {
	client.Do(request)          // want `retryowner/http-client: http.Client.Do follows redirects.*send through internal/egress`
	client.Get("")              // want `retryowner/http-client: http.Client.Get`
	client.Head("")             // want `retryowner/http-client: http.Client.Head`
	client.Post("", "", nil)    // want `retryowner/http-client: http.Client.Post`
	client.PostForm("", nil)    // want `retryowner/http-client: http.Client.PostForm`
	http.Get("")                // want `retryowner/http-client: http.Get`
	http.Head("")               // want `retryowner/http-client: http.Head`
	http.Post("", "", nil)      // want `retryowner/http-client: http.Post`
	http.PostForm("", nil)      // want `retryowner/http-client: http.PostForm`
	_ = http.DefaultTransport   // want `retryowner/http-client: http.DefaultTransport`
	do := http.DefaultClient.Do // want `retryowner/http-client: http.DefaultClient` `retryowner/http-client: http.Client.Do`
	_, _ = do(request)

	s.Get("")
	request.Header.Get("")
	var transport http.RoundTripper
	transport.RoundTrip(request)
}

func bodies(request *http.Request, open func() (r readCloser, err error)) {
	request.GetBody = nil
	request.GetBody = getBody          // want `retryowner/get-body: a request with GetBody is sent again.*leave GetBody nil`
	_ = http.Request{GetBody: getBody} // want `retryowner/get-body`
	_ = http.Request{GetBody: nil}
	_ = mine{GetBody: getBody}
}

func keys(header http.Header, other map[string]string) {
	header.Set("Idempotency-Key", "1")                     // want `retryowner/idempotency-key: a request with an Idempotency-Key header is sent again`
	header.Add("x-idempotency-key", "1")                   // want `retryowner/idempotency-key`
	header["Idempotency-Key"] = nil                        // want `retryowner/idempotency-key`
	_ = http.Header{"Idempotency-Key": nil, "Accept": nil} // want `retryowner/idempotency-key`

	header.Set("webhook-id", "1")
	_ = header.Get("Idempotency-Key")
	header.Del("Idempotency-Key")
	other["Idempotency-Key"] = "1"
}

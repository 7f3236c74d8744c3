package egress

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

const (
	// maxRoundTripRequest and maxRoundTripBody bound what goes through a [Door.RoundTripper] in one exchange. An identity
	// provider's keys take tens of KiB at most.
	maxRoundTripRequest = 64 << 10
	maxRoundTripBody    = 1 << 20
)

// RoundTripper returns the door for libraries that bring their own requests. Each passes the same gates as one of
// [Door.Send], under the default timeouts, and is sent at most once; what the connection's own headers say is the door's.
// The body of an answer is read to its end and may have 1 MiB. An error is a *[Failure].
//
// The client that uses it should not follow redirects.
func (d *Door) RoundTripper() http.RoundTripper { return roundTripper{d} }

type roundTripper struct{ door *Door }

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	r := &Request{Method: req.Method, URL: req.URL.String(), Header: req.Header, Body: body, keep: maxRoundTripBody}
	if r.Method == "" {
		r.Method = http.MethodGet // as http.Request has it
	}
	answer := t.door.Send(req.Context(), r)
	switch {
	case answer.Failure != nil:
		return nil, answer.Failure
	case answer.BodyError != nil:
		return nil, answer.BodyError
	case answer.BodyTruncated:
		return nil, &Failure{Type: ConnectionFailed, Phase: PhaseBody, Err: io.ErrShortBuffer,
			Sentence: fmt.Sprintf("The answer is longer than the %d KiB that are read.", maxRoundTripBody>>10)}
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status)),
		StatusCode: answer.Status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header, Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)),
		Request: req,
	}, nil
}

// readRequest takes the body out of a request, and closes it as a RoundTripper must.
func readRequest(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRoundTripRequest+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(body) > maxRoundTripRequest {
		return nil, &Failure{Type: ConfigurationError, Err: io.ErrShortBuffer,
			Sentence: fmt.Sprintf("The request is longer than the %d KiB that are sent.", maxRoundTripRequest>>10)}
	}
	return body, nil
}

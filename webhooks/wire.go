package webhooks

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The headers of Standard Webhooks, section "Webhook metadata", as net/http spells them.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// The other headers of a delivery that are not for the endpoint to choose.
const (
	headerContentType = "Content-Type"
	headerUserAgent   = "User-Agent"
)

// bodyTimeLayout is RFC 3339 in UTC with as many digits as a timestamptz holds, trailing zeros left out.
const bodyTimeLayout = "2006-01-02T15:04:05.999999Z07:00"

// message is an event as receivers see it. Its id and its body are the same on every attempt; the time of the attempt and
// the signatures are not.
type message struct {
	id   string
	typ  string
	at   time.Time // when it happened, else when it was published
	data []byte    // JSON, byte for byte as published
}

// body is the payload of Standard Webhooks: type, timestamp and data, with the data's own bytes inside.
func (m message) body() []byte {
	typ, err := json.Marshal(m.typ)
	if err != nil {
		panic("webhooks: a string that JSON cannot hold") // json.Marshal takes any string.
	}
	b := make([]byte, 0, len(m.data)+len(typ)+96)
	b = append(b, `{"type":`...)
	b = append(b, typ...)
	b = append(b, `,"timestamp":"`...)
	b = m.at.UTC().AppendFormat(b, bodyTimeLayout)
	b = append(b, `","data":`...)
	b = append(b, m.data...)
	return append(b, '}')
}

// header is the header of one attempt that starts at sentAt: the endpoint's own headers and, over them, ours.
func (m message) header(own map[string]string, keys [][]byte, sentAt time.Time, body []byte, userAgent string) http.Header {
	h := make(http.Header, len(own)+5)
	for name, value := range own {
		h.Set(name, value)
	}
	h[headerContentType] = []string{"application/json"}
	h[headerUserAgent] = []string{userAgent}
	h[headerID] = []string{m.id}
	h[headerTimestamp] = []string{strconv.FormatInt(sentAt.Unix(), 10)}
	h[headerSignature] = []string{signatures(keys, m.id, sentAt, body)}
	return h
}

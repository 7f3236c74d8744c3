package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// signatureVersion names HMAC-SHA256 (Standard Webhooks, section "Signature scheme").
const signatureVersion = "v1"

// signatures is the value of the webhook-signature header: one signature for each key, separated by spaces, so that a
// receiver who knows any of the live secrets can verify.
func signatures(keys [][]byte, id string, at time.Time, body []byte) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(signatureVersion)
		b.WriteByte(',')
		b.WriteString(signature(key, id, at, body))
	}
	return b.String()
}

// signature is the base64 of HMAC-SHA256 over "id.timestamp.body".
func signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	mac.Write([]byte{'.'})
	mac.Write(strconv.AppendInt(nil, at.Unix(), 10))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

package mailer

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"entrega/internal/egress"
)

// awsSigner are the credentials and the scope of a signature.
type awsSigner struct{ id, secret, region, service string }

// sign adds a Signature Version 4 to a POST without a query (AWS General Reference, "Create a signed AWS API request"). The
// signature holds for minutes, so it is made at each attempt; the body does not change with it.
func (s awsSigner) sign(req *egress.Request, now time.Time) error {
	u, err := url.Parse(req.URL)
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	stamp := now.UTC().Format("20060102T150405Z")
	scope := stamp[:8] + "/" + s.region + "/" + s.service + "/aws4_request"
	const signed = "content-type;host;x-amz-date"
	canonical := strings.Join([]string{http.MethodPost, cmp.Or(u.EscapedPath(), "/"), "",
		"content-type:" + req.Header.Get("Content-Type"), "host:" + u.Host, "x-amz-date:" + stamp, "", signed, hexSHA256(req.Body)}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", stamp, scope, hexSHA256([]byte(canonical))}, "\n")
	key := []byte("AWS4" + s.secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = hmacSHA256(key, part)
	}
	req.Header.Set("X-Amz-Date", stamp)
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", s.id, scope, signed,
		hex.EncodeToString(hmacSHA256(key, toSign))))
	return nil
}

// sesRegion reads the region out of email.REGION.amazonaws.com.
func sesRegion(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", errors.New("the address is no URL")
	}
	parts := strings.Split(u.Hostname(), ".")
	if len(parts) < 4 || parts[0] != "email" {
		return "", errors.New("the address names no region")
	}
	return parts[1], nil
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

package mailer

import (
	"net/http"
	"testing"
	"time"

	"entrega/internal/egress"
)

// The vectors are of the test suite for Signature Version 4 that Amazon publishes: post-vanilla has no body and no type, so the two
// with a form are those that fit a request with one.
func TestAWSSigner_AmazonsVectors(t *testing.T) {
	t.Parallel()
	s := awsSigner{id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region: "us-east-1", service: "service"}
	for name, tt := range map[string]struct{ media, signature string }{
		"post-x-www-form-urlencoded":            {"application/x-www-form-urlencoded", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		"post-x-www-form-urlencoded-parameters": {"application/x-www-form-urlencoded; charset=utf8", "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := &egress.Request{URL: "https://example.amazonaws.com/", Header: http.Header{"Content-Type": {tt.media}}, Body: []byte("Param1=value1")}
			if err := s.sign(req, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)); err != nil {
				t.Fatal(err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=" + tt.signature
			if got := req.Header.Get("Authorization"); got != want {
				t.Errorf("signed as\n%s, want\n%s", got, want)
			}
			if got := req.Header.Get("X-Amz-Date"); got != "20150830T123600Z" {
				t.Errorf("dated %s", got)
			}
		})
	}
}

func TestSESRegion(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://email.eu-west-1.amazonaws.com/v2/email/outbound-emails":     "eu-west-1",
		"https://email.cn-north-1.amazonaws.com.cn/v2/email/outbound-emails": "cn-north-1",
		"https://api.example.com/":  "",
		"https://127.0.0.1/":        "",
		"email.eu-west-1.amazonaws": "",
	} {
		if got, err := sesRegion(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is of the region %q, %v; want %q", address, got, err, want)
		}
	}
}

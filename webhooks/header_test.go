package webhooks

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
)

func TestHeaders_RefusedBySentence(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"connection": "close", "Keep-Alive": "1", "proxy-authorization": "x", "TE": "trailers", "trailer": "x", "transfer-encoding": "chunked",
		"upgrade": "h2c", "Host": "other", "content-length": "1", "Webhook-Id": "x", "webhook-signature": "x", "WEBHOOK-ANYTHING": "x",
		"Idempotency-Key": "x", "X-Idempotency-Key": "x", "content-type": "text/plain", "user-agent": "x", "expect": "100-continue",
		"accept-encoding": "gzip", "a b": "x", "a:b": "x", "": "x", "É": "x", "X-Empty": "", "X-Break": "a\r\nB: c", "X-Zero": "a\x00b",
	} {
		var bad store.InvalidError
		checkHeaders(map[string]string{name: value}, &bad)
		if bad.Sentence("headers."+name) == "" {
			t.Errorf("%q: %q was accepted", name, value)
		}
	}
}

func TestHeaders_KeptCanonicalAndTrimmed(t *testing.T) {
	t.Parallel()
	var bad store.InvalidError
	got := checkHeaders(map[string]string{" x-api-key ": "  secret ", "authorization": "Bearer x"}, &bad)
	if diff := cmp.Diff(map[string]string{"X-Api-Key": "secret", "Authorization": "Bearer x"}, got); diff != "" {
		t.Error(diff)
	}
	if err := bad.OrNil(); err != nil {
		t.Error(err)
	}
}

func TestHeaders_BoundedInNumberAndSize(t *testing.T) {
	t.Parallel()
	tooMany := map[string]string{}
	for i := range maxHeaders + 1 {
		tooMany["X-"+strings.Repeat("a", i+1)] = "v"
	}
	for name, headers := range map[string]map[string]string{
		"too many":       tooMany,
		"too long":       {"X-Long": strings.Repeat("a", maxHeaderBytes)},
		"given twice":    {"x-one": "1", "X-One": "2"},
		"long in a list": {"X-A": strings.Repeat("a", 2100), "X-B": strings.Repeat("b", 2100)},
	} {
		var bad store.InvalidError
		checkHeaders(headers, &bad)
		if bad.OrNil() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestHeaders_CredentialsAreHiddenInExcerptsAndTheSignatureStays(t *testing.T) {
	t.Parallel()
	h := http.Header{"Authorization": {"Bearer x"}, "X-Api-Key": {"k"}, "Cookie": {"a=b"}, "X-Auth-Token": {"t"}, "X-Client-Secret": {"s"},
		"X-Shop": {"7"}, headerSignature: {"v1,abc"}, headerID: {"event_1"}}
	want := http.Header{"Authorization": {hidden}, "X-Api-Key": {hidden}, "Cookie": {hidden}, "X-Auth-Token": {hidden}, "X-Client-Secret": {hidden},
		"X-Shop": {"7"}, headerSignature: {"v1,abc"}, headerID: {"event_1"}}
	if diff := cmp.Diff(want, excerptHeader(h)); diff != "" {
		t.Error(diff)
	}
	if h.Get("Authorization") != "Bearer x" {
		t.Error("the request's own header was changed")
	}
}

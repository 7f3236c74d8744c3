package webhooks

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// vectorSecret and the values beside it are the published vector of Standard Webhooks.
const vectorSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestSignature_PublishedVector(t *testing.T) {
	t.Parallel()
	key, err := parseSecret(vectorSecret)
	if err != nil {
		t.Fatal(err)
	}
	got := signatures([][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
}

func TestSignature_EachLiveSecretVerifies(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys := [][]byte{newSecretKey(), newSecretKey()}
	body := message{id: "event_1", typ: "order.created", at: now, data: []byte(`{"a":1}`)}.body()
	h := message{id: "event_1"}.header(nil, keys, now, body, "Entrega/test")

	for i, key := range keys {
		receiver, err := standardwebhooks.NewWebhook(formatSecret(key))
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.Verify(body, h); err != nil {
			t.Errorf("a receiver with secret %d: %v", i, err)
		}
	}
	stranger, err := standardwebhooks.NewWebhook(formatSecret(newSecretKey()))
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Verify(body, h); err == nil {
		t.Error("a receiver with another secret verified the message")
	}
}

func TestSecret_OnlyLiveOnesSignNewestFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	secrets := []secret{
		{id: "newest", key: []byte("newest")},
		{id: "old", key: []byte("old"), expiresAt: now.Add(time.Second)},
		{id: "ends now", key: []byte("ends now"), expiresAt: now},
		{id: "ended", key: []byte("ended"), expiresAt: now.Add(-time.Hour)},
	}
	var got []string
	for _, key := range liveKeys(secrets, now) {
		got = append(got, string(key))
	}
	if want := "newest old"; strings.Join(got, " ") != want {
		t.Errorf("keys %q, want %q", got, want)
	}
}

func TestSecret_FormIsRefusedUnlessStandardWebhooks(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no prefix":     strings.TrimPrefix(vectorSecret, secretPrefix),
		"other prefix":  "whsk_" + strings.TrimPrefix(vectorSecret, secretPrefix),
		"not base64":    "whsec_!!!!",
		"too short":     formatSecret(make([]byte, 23)),
		"too long":      formatSecret(make([]byte, 65)),
		"no padding":    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMQ",
		"url alphabet":  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa__",
		"empty":         "",
		"nothing after": "whsec_",
	} {
		if _, err := parseSecret(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, size := range []int{24, 32, 64} {
		if _, err := parseSecret(formatSecret(make([]byte, size))); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestMessage_DataIsSentByteForByte(t *testing.T) {
	t.Parallel()
	// Odd spacing, a duplicate key, a number beyond a float, escapes that an encoder would rewrite.
	data := "{ \"a\":1,\"a\" : 12345678901234567890.10,\n\t\"h\":\"<&\\u003e\\/\u2028\" }"
	at := time.Date(2026, 2, 3, 4, 5, 6, 120_000, time.FixedZone("CET", 3600))
	got := string(message{id: "x", typ: "order.created", at: at, data: []byte(data)}.body())
	if want := `{"type":"order.created","timestamp":"2026-02-03T03:05:06.00012Z","data":` + data + `}`; got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
}

func TestMessage_OwnHeadersNeverReplaceOurs(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 999_999_999)
	own := map[string]string{"X-Api-Key": "k", "Content-Type": "text/plain", "Webhook-Id": "forged", "User-Agent": "curl"}
	h := message{id: "event_1"}.header(own, [][]byte{newSecretKey()}, at, []byte("{}"), "Entrega/1.2")
	want := map[string]string{"X-Api-Key": "k", "Content-Type": "application/json", "Webhook-Id": "event_1",
		"Webhook-Timestamp": strconv.FormatInt(at.Unix(), 10), "User-Agent": "Entrega/1.2"}
	for name, value := range want {
		if got := h[http.CanonicalHeaderKey(name)]; len(got) != 1 || got[0] != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

package mailer_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"entrega/internal/egress"
	"entrega/jobs"
	"entrega/mailer"
)

// toLoopback resolves every name to this machine.
func toLoopback(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var query dnsmessage.Message
			if query.Unpack(buf[:n]) != nil || len(query.Questions) != 1 {
				continue
			}
			q := query.Questions[0]
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true}, Questions: query.Questions}
			if q.Type == dnsmessage.TypeA {
				answer.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
			}
			if packed, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// signatureOf computes the Signature Version 4 of a request as a server does: from the request itself and what its Authorization says.
func signatureOf(r *http.Request, body []byte, secret string) string {
	sum := func(b []byte) string {
		s := sha256.Sum256(b)
		return hex.EncodeToString(s[:])
	}
	hash := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		_, _ = io.WriteString(m, text)
		return m.Sum(nil)
	}
	part := func(name string) string {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), name+"=")
		value, _, _ := strings.Cut(rest, ",")
		return value
	}
	var headers strings.Builder
	for _, name := range strings.Split(part("SignedHeaders"), ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	canonical := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%s", r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), part("SignedHeaders"), sum(body))
	_, scope, _ := strings.Cut(part("Credential"), "/")
	fields := strings.Split(scope, "/")
	key := hash(hash(hash(hash([]byte("AWS4"+secret), fields[0]), fields[1]), fields[2]), fields[3])
	return hex.EncodeToString(hash(key, "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+sum([]byte(canonical))))
}

// setupSES is an installation whose mail leaves by SES, which a server on this machine plays under Amazon's name.
func setupSES(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body []byte)) *bundle {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer(w, r, body)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, mailer.Settings{})
	allow, err := egress.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	door, err := egress.New(egress.Options{Allow: allow, AllowHTTP: true, Resolver: toLoopback(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	b.mailer, err = mailer.NewMailer(mailer.MailerOptions{Pool: b.pool, Client: b.client, Box: b.box(), Door: door, Logger: quiet, Now: b.now,
		Installation: mailer.Settings{Kind: mailer.API, From: "Shop <mail@shop.example>", API: mailer.APISettings{Shape: mailer.ShapeSES, Key: "AKID:aws_secret",
			URL: "http://email.eu-west-1.amazonaws.com:" + at.Port() + "/v2/email/outbound-emails"}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAPI_SESGetsASignedRequestWithTheWholeMessage(t *testing.T) {
	t.Parallel()
	type seen struct {
		path, authorization, want, host string
		body                            []byte
	}
	requests := make(chan seen, 1)
	b := setupSES(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		requests <- seen{r.URL.Path, r.Header.Get("Authorization"), signatureOf(r, body, "aws_secret"), r.Host, body}
		_, _ = io.WriteString(w, `{"MessageId":"ses-1"}`)
	})
	b.start()
	n := order("SO-1", buyer)
	n.HTML = "<p>SO-1</p>"
	q := b.notify(n)
	b.reach(q.TaskID, jobs.StateCompleted)
	got := <-requests
	if got.path != "/v2/email/outbound-emails" || !strings.HasPrefix(got.host, "email.eu-west-1.amazonaws.com:") {
		t.Errorf("asked for %s at %s", got.path, got.host)
	}
	if !strings.Contains(got.authorization, "/eu-west-1/ses/aws4_request, ") || !strings.HasSuffix(got.authorization, "Signature="+got.want) {
		t.Errorf("signed as %s, want %s", got.authorization, got.want)
	}
	var body struct {
		FromEmailAddress string
		Destination      struct{ ToAddresses []string }
		Content          struct{ Raw struct{ Data []byte } }
		EmailTags        []struct{ Name, Value string }
	}
	decoder := json.NewDecoder(bytes.NewReader(got.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	if body.FromEmailAddress != `"Shop" <mail@shop.example>` || len(body.Destination.ToAddresses) != 1 || body.Destination.ToAddresses[0] != buyer ||
		len(body.EmailTags) != 1 || body.EmailTags[0].Name != "notification" || body.EmailTags[0].Value != q.ID {
		t.Errorf("the request is %+v", body)
	}
	l, err := b.mailer.NotificationByID(b.ctx, b.pool, b.project, q.ID)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := b.mailer.Source(b.ctx, b.pool, l); err != nil || !bytes.Equal(raw, body.Content.Raw.Data) {
		t.Errorf("the message is %s, want %s (%v)", base64.StdEncoding.EncodeToString(body.Content.Raw.Data), raw, err)
	}
	if l.ProviderID != "ses-1" || !strings.HasPrefix(l.Transport, "email.eu-west-1.amazonaws.com") {
		t.Errorf("it left by %q as %q", l.Transport, l.ProviderID)
	}
	if peer := netip.MustParseAddrPort(*b.records(q.TaskID)[0].Peer); !peer.Addr().IsLoopback() {
		t.Errorf("the peer was %s", peer)
	}
	b.wantNowhere("aws_secret")
	b.wantNowhere(buyer)
}

func TestAPI_SESRefusingTheSignaturePausesTheTransport(t *testing.T) {
	t.Parallel()
	b := setupSES(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"The request signature we calculated does not match the signature you provided."}`)
	})
	b.start()
	q := b.notify(order("SO-1", buyer))
	if task := b.reach(q.TaskID, jobs.StateSnoozed); task.Reason != mailer.ReasonTransportPaused {
		t.Errorf("the mail waits for %q", task.Reason)
	}
}

package mailer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sample() Message {
	return Message{ID: "notification_1", Sender: "mail@shop.example", Recipient: "buyer@customer.example", From: "Shop <mail@shop.example>",
		Subject: "Bestellung für Ines", Text: "A line.\r\n.\r\nFrom here on.\r\n", HTML: "<p>A line.</p>", MessageID: "<notification_1@shop.example>",
		Date: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Boundary: "0123456789abcdef"}
}

func TestMessage_SameFieldsSameBytes(t *testing.T) {
	t.Parallel()
	first, err := sample().Raw(DKIMSettings{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "message.eml", string(first))
	for range 5 {
		again, err := sample().Raw(DKIMSettings{})
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("the bytes differ, %v:\n%s", err, cmp.Diff(string(first), string(again)))
		}
	}
}

func TestMessage_SignatureVerifiesAndIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaPublic, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key    any
		record string
	}{
		"RSA":     {rsaKey, "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(rsaPublic)},
		"Ed25519": {edKey, "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(edPublic)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			der, err := x509.MarshalPKCS8PrivateKey(tt.key)
			if err != nil {
				t.Fatal(err)
			}
			d := DKIMSettings{Domain: "shop.example", Selector: "entrega", Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
			raw, err := sample().Raw(d)
			if err != nil {
				t.Fatal(err)
			}
			found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
				if name != "entrega._domainkey.shop.example" {
					t.Errorf("looked up %s", name)
				}
				return []string{tt.record}, nil
			}})
			if err != nil || len(found) != 1 || found[0].Err != nil {
				t.Fatalf("verified %+v, %v", found, err)
			}
			again, err := sample().Raw(d)
			if err != nil || !bytes.Equal(raw, again) {
				t.Errorf("the second copy differs, %v", err)
			}
		})
	}
}

func TestLetters_AreGolden(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]letter{
		"access":       accessLetter("user@customer.example", "Shop & <Sons>", "Hello,\nplease let me in. </blockquote>", "https://entrega.example/p/project_1/team"),
		"approval":     approvalLetter("Shop & <Sons>", "on-call", "https://entrega.example/p/project_1"),
		"confirmation": confirmationLetter(),
		"new_address":  newAddressLetter("old@customer.example"),
		"test":         testLetter("Shop", "smtp.example.com:587"),
	} {
		d, err := l.draft(t.Context(), draft{})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", "Subject: "+d.subject+"\n\n"+d.text)
		golden(t, name+".html", d.html)
		if strings.Contains(d.html, "<Sons>") {
			t.Errorf("%s: a name became markup", name)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

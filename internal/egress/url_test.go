package egress_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/egress"
)

func TestCheckURL_Corpus(t *testing.T) {
	t.Parallel()
	d := newDoor(t, egress.Options{})
	tests := []struct {
		raw  string
		want string // the URL as it will be called, or
		rule egress.Rule
	}{
		{raw: "https://hooks.example.com/in", want: "https://hooks.example.com/in"},
		{raw: "https://hooks.example.com:8443/in?a=b%20c", want: "https://hooks.example.com:8443/in?a=b%20c"},
		{raw: "https://hooks.example.com:443/", want: "https://hooks.example.com/"},
		{raw: "https://hooks.example.com:/", want: "https://hooks.example.com/"},
		{raw: "HTTPS://Hooks.Example.COM/In", want: "https://hooks.example.com/In"},
		{raw: "https://hooks.example.com./in", want: "https://hooks.example.com/in"},
		{raw: "https://my_app.example.com", want: "https://my_app.example.com"},
		{raw: "https://bücher.example/in", want: "https://xn--bcher-kva.example/in"},
		{raw: "https://B%C3%9CCHER.example/in", rule: egress.RuleHost},
		{raw: "https://xn--bcher-kva.example/in", want: "https://xn--bcher-kva.example/in"},
		{raw: "https://hooks。example．com/in", want: "https://hooks.example.com/in"},
		{raw: "https://93.184.216.34/in", want: "https://93.184.216.34/in"},
		{raw: "https://93.184.216.34./in", want: "https://93.184.216.34/in"},
		{raw: "https://[2606:2800:220:1::1]:8443/in", want: "https://[2606:2800:220:1::1]:8443/in"},
		{raw: "https://[2606:2800:220:1::1%25eth0]/in", want: "https://[2606:2800:220:1::1]/in"},
		{raw: "https://1e100.net/", want: "https://1e100.net/"},
		{raw: "https://0x.example.com/", want: "https://0x.example.com/"},

		{raw: "", rule: egress.RuleURL},
		{raw: " https://example.com", rule: egress.RuleURL},
		{raw: "https://example.com/a b", rule: egress.RuleURL},
		{raw: "https://example.com/\r\nX: y", rule: egress.RuleURL},
		{raw: "https://example.com/\x00", rule: egress.RuleURL},
		{raw: "https://example.com/\u0085", rule: egress.RuleURL},
		{raw: "https://example.com/\u00a0", rule: egress.RuleURL},
		{raw: "https://example.com\u3000.evil.com/", rule: egress.RuleURL},
		{raw: `https://example.com\@127.0.0.1/`, rule: egress.RuleURL},
		{raw: `https:\\example.com/`, rule: egress.RuleURL},
		{raw: "https://example.com/\xff", rule: egress.RuleURL},
		{raw: "https://example.com/%zz", rule: egress.RuleURL},
		{raw: "https://example.com:port/", rule: egress.RuleURL},
		{raw: "https://::1/", rule: egress.RuleURL},
		{raw: "https://[::1/", rule: egress.RuleURL},
		{raw: "https://127%2e0%2e0%2e1/", rule: egress.RuleURL},
		{raw: "https://[127.0.0.1]/", rule: egress.RuleURL},

		{raw: "http://example.com/", rule: egress.RuleScheme},
		{raw: "ftp://example.com/", rule: egress.RuleScheme},
		{raw: "file:///etc/passwd", rule: egress.RuleScheme},
		{raw: "javascript:alert(1)", rule: egress.RuleScheme},
		{raw: "//example.com/", rule: egress.RuleScheme},
		{raw: "example.com/", rule: egress.RuleScheme},
		{raw: "hooks.example.com:8443/in", rule: egress.RuleScheme},

		{raw: "https://a@example.com/", rule: egress.RuleUserinfo},
		{raw: "https://@example.com/", rule: egress.RuleUserinfo},
		{raw: "https://a:b@127.0.0.1/", rule: egress.RuleUserinfo},
		{raw: "https://example.com@127.0.0.1/", rule: egress.RuleUserinfo},

		{raw: "https:///in", rule: egress.RuleHost},
		{raw: "https:example.com/in", rule: egress.RuleHost},
		{raw: "https://:443/in", rule: egress.RuleHost},
		{raw: "https://./in", rule: egress.RuleHost},
		{raw: "https://a..example.com/", rule: egress.RuleHost},
		{raw: "https://example.com../", rule: egress.RuleHost},
		{raw: "https://-a.example.com/", rule: egress.RuleHost},
		{raw: "https://exa!mple.com/", rule: egress.RuleHost},
		{raw: "https://xn--a/", rule: egress.RuleHost},
		{raw: "https://0x7f.1/", rule: egress.RuleHost},
		{raw: "https://0x7f000001/", rule: egress.RuleHost},
		{raw: "https://0X7F.0.0.1/", rule: egress.RuleHost},
		{raw: "https://2130706433/", rule: egress.RuleHost},
		{raw: "https://017700000001/", rule: egress.RuleHost},
		{raw: "https://0177.0.0.1/", rule: egress.RuleHost},
		{raw: "https://127.1/", rule: egress.RuleHost},
		{raw: "https://127.0.0.01/", rule: egress.RuleHost},
		{raw: "https://127.0.0.0x1/", rule: egress.RuleHost},
		{raw: "https://127.0.0.1.0/", rule: egress.RuleHost},
		{raw: "https://1.1.1.256/", rule: egress.RuleHost},
		{raw: "https://0/", rule: egress.RuleHost},
		{raw: "https://0x/", rule: egress.RuleHost},
		{raw: "https://example.com.0x/", rule: egress.RuleHost},

		{raw: "https://example.com:0/", rule: egress.RulePort},
		{raw: "https://example.com:65536/", rule: egress.RulePort},
		{raw: "https://example.com:99999999999999999999/", rule: egress.RulePort},
		{raw: "https://example.com:22/", rule: egress.RulePort},
		{raw: "https://example.com:0025/", rule: egress.RulePort},
		{raw: "https://example.com:5432/", rule: egress.RulePort},
		{raw: "https://example.com:27017/", rule: egress.RulePort},

		{raw: "https://localhost/", rule: egress.RuleName},
		{raw: "https://LOCALHOST./", rule: egress.RuleName},
		{raw: "https://ⓛocalhost/", rule: egress.RuleName},
		{raw: "https://local\u200bhost/", rule: egress.RuleName},
		{raw: "https://a.localhost/", rule: egress.RuleName},
		{raw: "https://printer.local/", rule: egress.RuleName},
		{raw: "https://metadata.google.internal/", rule: egress.RuleName},

		{raw: "https://127.0.0.1/", rule: egress.RuleAddress},
		{raw: "https://127.0.0.1./", rule: egress.RuleAddress},
		{raw: "https://127。0。0。1/", rule: egress.RuleAddress},
		{raw: "https://１２７.0.0.1/", rule: egress.RuleAddress},
		{raw: "https://①②⑦.0.0.1/", rule: egress.RuleAddress},
		{raw: "https://[::1]/", rule: egress.RuleAddress},
		{raw: "https://[::1%25lo]/", rule: egress.RuleAddress},
		{raw: "https://[::ffff:127.0.0.1]/", rule: egress.RuleAddress},
		{raw: "https://[::ffff:7f00:1]/", rule: egress.RuleAddress},
		{raw: "https://[fe80::1%25eth0]/", rule: egress.RuleAddress},
		{raw: "https://169.254.169.254/latest/meta-data/", rule: egress.RuleAddress},
	}
	for _, tt := range tests {
		u, err := d.CheckURL(tt.raw)
		if tt.rule == "" {
			if err != nil {
				t.Errorf("%q: %v, want %s", tt.raw, err, tt.want)
			} else if diff := cmp.Diff(tt.want, u.String()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.raw, diff)
			}
			continue
		}
		var refused *egress.BlockedError
		switch {
		case err == nil:
			t.Errorf("%q: passed as %s, want rule %s", tt.raw, u, tt.rule)
		case !errors.As(err, &refused):
			t.Errorf("%q: %T, want *BlockedError", tt.raw, err)
		case refused.Rule != tt.rule || refused.Sentence == "":
			t.Errorf("%q: rule %s (%s), want %s", tt.raw, refused.Rule, refused.Sentence, tt.rule)
		}
	}
}

func TestCheckURL_HTTPNeedsItsOwnPermission(t *testing.T) {
	t.Parallel()
	allow := mustAllow(t, "127.0.0.1", "hooks.internal")
	strict := newDoor(t, egress.Options{Allow: allow})
	lax := newDoor(t, egress.Options{Allow: allow, AllowHTTP: true})
	for _, raw := range []string{"http://127.0.0.1:9000/", "http://hooks.internal/", "http://example.com/"} {
		var refused *egress.BlockedError
		if _, err := strict.CheckURL(raw); !errors.As(err, &refused) || refused.Rule != egress.RuleScheme {
			t.Errorf("%s without permission for http: %v, want rule scheme", raw, err)
		}
		if _, err := lax.CheckURL(raw); err != nil {
			t.Errorf("%s with permission for http: %v", raw, err)
		}
	}
}

func TestCheckURL_AllowLiftsWhatItNames(t *testing.T) {
	t.Parallel()
	d := newDoor(t, egress.Options{Allow: mustAllow(t,
		"10.0.0.0/8, 127.0.0.1:9000", "search.internal:9200", "localhost", "[fd00::1]:8443 bücher.local", "::ffff:192.168.0.0/112")})
	tests := []struct {
		raw  string
		rule egress.Rule // empty when it passes
	}{
		{raw: "https://10.1.2.3/"},
		{raw: "https://10.1.2.3:8443/"},
		{raw: "https://[::ffff:10.1.2.3]/"},
		{raw: "https://10.1.2.3:5432/", rule: egress.RulePort},
		{raw: "https://11.1.2.3/"},
		{raw: "https://172.16.0.1/", rule: egress.RuleAddress},
		{raw: "https://192.168.0.9/"},
		{raw: "https://192.168.1.9/"},
		{raw: "https://127.0.0.1:9000/"},
		{raw: "https://127.0.0.1:9001/", rule: egress.RuleAddress},
		{raw: "https://127.0.0.2:9000/", rule: egress.RuleAddress},
		{raw: "https://search.internal:9200/"},
		{raw: "https://search.internal/", rule: egress.RuleName},
		{raw: "https://other.internal:9200/", rule: egress.RulePort},
		{raw: "https://localhost/"},
		{raw: "https://localhost:22/", rule: egress.RulePort},
		{raw: "https://a.localhost/", rule: egress.RuleName},
		{raw: "https://[fd00::1]:8443/"},
		{raw: "https://[fd00::1]/", rule: egress.RuleAddress},
		{raw: "https://xn--bcher-kva.local/"},
	}
	for _, tt := range tests {
		_, err := d.CheckURL(tt.raw)
		var refused *egress.BlockedError
		var rule egress.Rule
		if errors.As(err, &refused) {
			rule = refused.Rule
		}
		if rule != tt.rule {
			t.Errorf("%s: rule %q (%v), want %q", tt.raw, rule, err, tt.rule)
		}
	}
}

func TestParseAllow_BadEntriesGetASentenceEach(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"https://example.com", "*.example.com", "127.0.0.1:0/8", "10.0.0.0/33", "example.com:0", "example.com:65536",
		"example.com:http", "exa!mple.com", "fe80::1%eth0", "::ffff:0:0/90", "/8", "a..b",
	} {
		if _, err := egress.ParseAllow("10.0.0.0/8", entry); err == nil {
			t.Errorf("%q was taken", entry)
		}
	}
	_, err := egress.ParseAllow("*.a.example,https://b.example", "c.example")
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("two bad entries of three gave %v, want two errors", err)
	}
	if _, err := egress.ParseAllow("", " , "); err != nil {
		t.Errorf("empty list: %v", err)
	}
}

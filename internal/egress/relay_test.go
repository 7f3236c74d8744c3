package egress_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"entrega/internal/egress"
)

func TestDialRelay_JudgesPortsNamesAndAddresses(t *testing.T) {
	t.Parallel()
	door, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		host string
		port uint16
		rule egress.Rule
	}{
		"a web server":        {"smtp.example.com", 443, egress.RulePort},
		"ssh":                 {"smtp.example.com", 22, egress.RulePort},
		"loopback":            {"127.0.0.1", 587, egress.RuleAddress},
		"private":             {"10.1.2.3", 25, egress.RuleAddress},
		"mapped loopback":     {"::ffff:127.0.0.1", 25, egress.RuleAddress},
		"localhost":           {"localhost", 587, egress.RuleName},
		"internal":            {"mail.internal", 587, egress.RuleName},
		"a number for a name": {"2130706433", 587, egress.RuleHost},
		"a URL":               {"smtp://relay", 587, egress.RuleHost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, failure := door.DialRelay(t.Context(), tt.host, tt.port, 0)
			if failure == nil {
				conn.Close()
				t.Fatal("the relay was called")
			}
			var refused *egress.BlockedError
			if failure.Type != egress.BlockedByPolicy || !errors.As(failure, &refused) || refused.Rule != tt.rule {
				t.Errorf("failure %v, want it blocked by the rule %s", failure, tt.rule)
			}
		})
	}
}

func TestDialRelay_CallsWhatTheOperatorNamed(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at := netip.MustParseAddrPort(listener.Addr().String())
	allow, err := egress.ParseAllow(at.String())
	if err != nil {
		t.Fatal(err)
	}
	door, err := egress.New(egress.Options{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	conn, failure := door.DialRelay(t.Context(), "127.0.0.1", at.Port(), 0)
	if failure != nil {
		t.Fatal(failure)
	}
	defer conn.Close()
	if conn.Peer != at {
		t.Errorf("connected to %s, want %s", conn.Peer, at)
	}
	if err := door.CheckRelay("127.0.0.1", at.Port()); err != nil {
		t.Errorf("what may be called may not be saved: %v", err)
	}

	if err := door.Deny(at); err != nil {
		t.Fatal(err)
	}
	if conn, failure := door.DialRelay(t.Context(), "127.0.0.1", at.Port(), 0); failure == nil || !strings.Contains(failure.Sentence, "leads back into this installation") {
		t.Errorf("a denied address answered %v, %v", conn, failure)
	}
}

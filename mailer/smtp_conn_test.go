package mailer

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/wneessen/go-mail/smtp"
)

// relayWithoutTLS greets and knows no STARTTLS. It tells every command that it gets.
func relayWithoutTLS(t *testing.T, conn net.Conn, commands chan<- string) {
	t.Helper()
	defer close(commands)
	_, _ = fmt.Fprint(conn, "220 relay.example\r\n")
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		commands <- lines.Text()
		_, _ = fmt.Fprint(conn, "250-relay.example\r\n250 AUTH PLAIN\r\n")
	}
}

func TestSMTP_WithoutSTARTTLSOnlyThisMachineIsSpokenTo(t *testing.T) {
	t.Parallel()
	for peer, want := range map[string]bool{"192.0.2.1:587": false, "10.0.0.7:587": false, "127.0.0.1:2525": true, "[::1]:2525": true} {
		t.Run(peer, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			commands := make(chan string, 10)
			go relayWithoutTLS(t, theirs, commands)
			// The credentials are not asked for here: without encryption they must not get that far.
			s := Settings{From: "Shop <mail@shop.example>", SMTP: SMTPSettings{Host: "relay.example", Port: 587, Security: StartTLS}}
			transport := newSMTP(s, nil, nil, nil)
			c := &conversation{}
			err := transport.greet(t.Context(), c, &relayConn{conn: ours}, netip.MustParseAddrPort(peer))
			_ = ours.Close()
			_ = theirs.Close()
			var setting *settingError
			if refused := errors.As(err, &setting); refused == want || err != nil && !refused {
				t.Fatalf("spoken to ended as %v, want it to work: %v", err, want)
			}
			var got []string
			for command := range commands {
				got = append(got, command)
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], "EHLO shop.example") {
				t.Errorf("the relay heard %q", got)
			}
			if !want {
				c.fail(t.Context(), err)
				if c.result.Verdict != Refused || !strings.Contains(c.result.Sentence, "STARTTLS") {
					t.Errorf("it means %s: %s", c.result.Verdict, c.result.Sentence)
				}
			}
		})
	}
}

func TestSMTP_CredentialsAreForThisMachineOrAnEncryptedConnection(t *testing.T) {
	t.Parallel()
	for _, method := range []AuthMethod{AuthPlain, AuthLogin} {
		for peer, want := range map[string]bool{"192.0.2.1:587": false, "127.0.0.1:2525": true} {
			transport := newSMTP(Settings{SMTP: SMTPSettings{Host: "relay.example", Username: "shop", Password: "right", Auth: method}}, nil, nil, nil)
			_, _, err := transport.auth(netip.MustParseAddrPort(peer)).Start(&smtp.ServerInfo{Name: "relay.example", Auth: []string{"PLAIN", "LOGIN"}})
			if (err == nil) != want {
				t.Errorf("%s to %s over a connection in the clear: %v, want it to work: %v", method, peer, err, want)
			}
		}
	}
}

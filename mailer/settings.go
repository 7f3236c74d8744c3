package mailer

import (
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"entrega/internal/store"
)

// TransportKind says how mail leaves.
type TransportKind string

// The kinds of transports.
const (
	// Capture keeps every mail where the panel shows it. Nothing leaves the machine.
	Capture TransportKind = "capture"
	SMTP    TransportKind = "smtp"
	API     TransportKind = "api"
)

// Security says how a connection to a relay is protected.
type Security string

// The ways to protect a connection. STARTTLS is required, unless the relay is on this very machine.
const (
	StartTLS    Security = "starttls"
	ImplicitTLS Security = "tls"
)

// AuthMethod is a SASL mechanism.
type AuthMethod string

// The mechanisms that a relay may want.
const (
	AuthPlain   AuthMethod = "plain"
	AuthLogin   AuthMethod = "login"
	AuthCRAM    AuthMethod = "cram-md5"
	AuthXOAUTH2 AuthMethod = "xoauth2"
)

// Settings are one transport with its sender. The zero value captures.
type Settings struct {
	Kind TransportKind `json:"kind"`
	// From is the sender of every mail: Shop <mail@shop.example>.
	From string       `json:"from,omitempty"`
	SMTP SMTPSettings `json:"smtp,omitzero"`
	API  APISettings  `json:"api,omitzero"`
	DKIM DKIMSettings `json:"dkim,omitzero"`
	// FeedbackSecret checks what the provider tells later: a signing secret, a public key, a topic or a password, as the
	// provider has it. Without one, nothing is taken in.
	FeedbackSecret string `json:"feedbackSecret,omitempty"`
}

// SMTPSettings name a relay.
type SMTPSettings struct {
	Host     string     `json:"host,omitempty"`
	Port     uint16     `json:"port,omitempty"`
	Security Security   `json:"security,omitempty"`
	Username string     `json:"username,omitempty"`
	Password string     `json:"password,omitempty"`
	Auth     AuthMethod `json:"auth,omitempty"`
}

// APISettings name a mail API.
type APISettings struct {
	Shape Shape `json:"shape,omitempty"`
	// URL is empty for the shape's own.
	URL string `json:"url,omitempty"`
	// Key is the API key; for SES the access key's id and secret with a colon between.
	Key string `json:"key,omitempty"`
	// Template is the JSON body of the generic shape, with {{to}} and the like inside its strings.
	Template string `json:"template,omitempty"`
	// IDField is the member of the generic shape's answer that names the mail.
	IDField string `json:"idField,omitempty"`
}

// DKIMSettings are the key that signs outgoing mail over SMTP. Mail APIs sign by themselves.
type DKIMSettings struct {
	Domain   string `json:"domain,omitempty"`
	Selector string `json:"selector,omitempty"`
	// Key is PEM: PKCS #1 or PKCS #8, RSA or Ed25519.
	Key string `json:"key,omitempty"`
}

func (d DKIMSettings) given() bool { return d != DKIMSettings{} }

// signer is nil without a key.
func (d DKIMSettings) signer() (crypto.Signer, error) {
	if !d.given() {
		return nil, nil
	}
	return mail.PrivKeyFromPEM([]byte(d.Key))
}

// Check brings the settings to the form that is stored, and refuses with a sentence for each field what cannot work.
func (s Settings) Check() (Settings, error) {
	var bad store.InvalidError
	switch s.Kind {
	case "":
		s.Kind = Capture
	case Capture, SMTP, API:
	default:
		bad.Add("kind", "Choose capture, smtp or api.")
	}
	if s.From != "" || s.Kind != Capture {
		whole, _, err := ParseFrom(s.From)
		if err != nil {
			bad.Add("from", "The sender "+err.Error()+".")
		}
		s.From = whole
	}
	switch s.Kind {
	case SMTP:
		s.SMTP.check(&bad)
	case API:
		s.API.check(&bad)
	}
	s.DKIM.check(&bad)
	return s, bad.OrNil()
}

func (s *SMTPSettings) check(bad *store.InvalidError) {
	switch s.Security {
	case "":
		s.Security = StartTLS
	case StartTLS, ImplicitTLS:
	default:
		bad.Add("security", "Choose starttls or tls.")
	}
	if s.Host == "" || strings.ContainsFunc(s.Host, breaksLines) {
		bad.Add("host", "Name the relay, such as smtp.example.com.")
	}
	if s.Port == 0 {
		s.Port = map[Security]uint16{ImplicitTLS: 465}[s.Security]
	}
	if s.Port == 0 {
		s.Port = 587
	}
	switch s.Auth {
	case "":
		s.Auth = AuthPlain
	case AuthPlain, AuthLogin, AuthCRAM, AuthXOAUTH2:
	default:
		bad.Add("auth", "Choose plain, login, cram-md5 or xoauth2.")
	}
	if s.Username == "" && s.Password != "" {
		bad.Add("username", "A password needs a user name.")
	}
	if strings.ContainsFunc(s.Username, breaksLines) || strings.ContainsFunc(s.Password, breaksLines) {
		bad.Add("username", "User name and password may hold no control characters.")
	}
}

func (d *DKIMSettings) check(bad *store.InvalidError) {
	if !d.given() {
		return
	}
	if d.Domain == "" || d.Selector == "" || strings.ContainsFunc(d.Domain+d.Selector, breaksLines) {
		bad.Add("dkim", "A DKIM key needs its domain and its selector.")
	}
	if _, err := d.signer(); err != nil {
		bad.Add("dkim", "The DKIM key must be a private key in PEM, RSA or Ed25519.")
	}
}

// ParseSMTPURL reads a relay from smtp://user:password@host:587 or smtps://host:465; ?auth= names another mechanism than plain.
func ParseSMTPURL(raw string) (SMTPSettings, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || (u.Scheme != "smtp" && u.Scheme != "smtps") || strings.Trim(u.Path, "/") != "" {
		return SMTPSettings{}, errors.New("must look like smtp://user:password@smtp.example.com:587, or smtps:// for TLS from the start")
	}
	s := SMTPSettings{Host: u.Hostname(), Username: u.User.Username(), Auth: AuthMethod(u.Query().Get("auth")), Security: StartTLS}
	s.Password, _ = u.User.Password()
	if u.Scheme == "smtps" {
		s.Security = ImplicitTLS
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return s, fmt.Errorf("has the port %q", p)
		}
		s.Port = uint16(n)
	}
	var bad store.InvalidError
	s.check(&bad)
	if len(bad.Fields) > 0 {
		return s, errors.New(bad.Fields[0].Sentence)
	}
	return s, nil
}

// About names the transport to people, without its credentials.
func (s Settings) About() string {
	switch s.Kind {
	case SMTP:
		return fmt.Sprintf("%s:%d", s.SMTP.Host, s.SMTP.Port)
	case API:
		if u, err := url.Parse(s.API.url()); err == nil {
			return u.Host
		}
		return string(s.API.Shape)
	default:
		return string(Capture)
	}
}

// fingerprint tells settings apart. It is kept in the clear, so it is a hash, and names no credential.
func (s Settings) fingerprint() []byte {
	raw, _ := json.Marshal(s) // Strings and numbers always encode.
	sum := sha256.Sum256(raw)
	return sum[:]
}

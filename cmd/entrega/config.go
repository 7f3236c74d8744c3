package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/egress"
	"entrega/internal/seal"
	"entrega/mailer"
	"entrega/web"
)

// Config is every setting there is. It comes from the environment and nowhere else.
type Config struct {
	// Listen is where panel and API are served (ENTREGA_LISTEN).
	Listen string
	// AdminListen is where /metrics and pprof are served; empty means nowhere (ENTREGA_ADMIN_LISTEN).
	AdminListen string
	// Data is the folder of the private Postgres and of the key made for it (ENTREGA_DATA).
	Data string
	// DatabaseURL is the database; empty means the private Postgres in Data (DATABASE_URL).
	DatabaseURL string
	// SecretKey encrypts secrets at rest, 32 bytes; nil until it is read from or made in Data (ENTREGA_SECRET_KEY).
	SecretKey []byte
	// OldSecretKeys still open what they sealed (ENTREGA_SECRET_KEY_OLD, comma separated).
	OldSecretKeys [][]byte
	// EgressAllow lists hosts and CIDRs that may be called though the guard would refuse them (ENTREGA_EGRESS_ALLOW).
	EgressAllow []string
	// AllowHTTP permits endpoints without TLS (ENTREGA_ALLOW_HTTP).
	AllowHTTP bool
	// Policies is a file that overrides retry policies (ENTREGA_POLICIES).
	Policies string
	// PublicURL is how people reach the panel; empty means http://Listen (ENTREGA_PUBLIC_URL).
	PublicURL *url.URL
	// TrustedProxies may say in X-Forwarded-For where a request comes from (ENTREGA_TRUSTED_PROXIES, CIDRs, comma separated).
	TrustedProxies []netip.Prefix
	// SignUpClosed leaves it to admins to make accounts (ENTREGA_SIGN_UP=closed).
	SignUpClosed bool
	// PgBin is the folder of the Postgres server binaries; empty means that they are searched for (ENTREGA_PG_BIN).
	PgBin string
	// OIDC is the identity provider, if any (ENTREGA_OIDC_ISSUER, ENTREGA_OIDC_CLIENT_ID, ENTREGA_OIDC_CLIENT_SECRET).
	OIDC web.OIDC
	// Mail is how mail leaves (ENTREGA_MAIL_TRANSPORT and its siblings).
	Mail mailer.Settings

	// tracer observes the database's statements, for tests; nil means that nothing does.
	tracer pgx.QueryTracer
}

// LoadConfig reads the settings and refuses wrong ones, all of them at once, each with a sentence.
func LoadConfig(getenv func(string) string) (Config, error) {
	c := Config{Listen: "127.0.0.1:8080", Data: "./.entrega", DatabaseURL: getenv("DATABASE_URL"), Policies: getenv("ENTREGA_POLICIES"),
		AdminListen: getenv("ENTREGA_ADMIN_LISTEN"), PgBin: getenv("ENTREGA_PG_BIN")}
	var problems []error
	refuse := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf(name+": "+format, args...))
	}
	if v := getenv("ENTREGA_LISTEN"); v != "" {
		c.Listen = v
	}
	for name, addr := range map[string]string{"ENTREGA_LISTEN": c.Listen, "ENTREGA_ADMIN_LISTEN": c.AdminListen} {
		if addr == "" {
			continue
		}
		if err := checkListen(addr); err != nil {
			refuse(name, "%w", err)
		}
	}
	if v := getenv("ENTREGA_DATA"); v != "" {
		c.Data = v
	}
	if c.DatabaseURL != "" {
		if u, err := url.Parse(c.DatabaseURL); err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
			refuse("DATABASE_URL", "must look like postgres://user:password@host:5432/database")
		}
	}
	if v := getenv("ENTREGA_SECRET_KEY"); v != "" {
		key, err := seal.ParseKey(v)
		if err != nil {
			refuse("ENTREGA_SECRET_KEY", "%w", err)
		}
		c.SecretKey = key
	}
	for _, v := range split(getenv("ENTREGA_SECRET_KEY_OLD")) {
		key, err := seal.ParseKey(v)
		if err != nil {
			refuse("ENTREGA_SECRET_KEY_OLD", "%w", err)
		}
		c.OldSecretKeys = append(c.OldSecretKeys, key)
	}
	c.EgressAllow = split(getenv("ENTREGA_EGRESS_ALLOW"))
	if _, err := egress.ParseAllow(c.EgressAllow...); err != nil {
		refuse("ENTREGA_EGRESS_ALLOW", "%w", err)
	}
	if v := getenv("ENTREGA_ALLOW_HTTP"); v != "" {
		allow, err := strconv.ParseBool(v)
		if err != nil {
			refuse("ENTREGA_ALLOW_HTTP", "is %q; use true or false", v)
		}
		c.AllowHTTP = allow
	}
	if v := getenv("ENTREGA_PUBLIC_URL"); v != "" {
		u, err := url.Parse(v)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
			u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			refuse("ENTREGA_PUBLIC_URL", "is %q; use an address such as https://entrega.example.com, and nothing more", v)
		} else {
			c.PublicURL = &url.URL{Scheme: u.Scheme, Host: u.Host}
		}
	}
	for _, v := range split(getenv("ENTREGA_TRUSTED_PROXIES")) {
		prefix, err := parsePrefix(v)
		if err != nil {
			refuse("ENTREGA_TRUSTED_PROXIES", "%q is neither an address nor a CIDR such as 10.0.0.0/8", v)
		}
		c.TrustedProxies = append(c.TrustedProxies, prefix)
	}
	switch v := getenv("ENTREGA_SIGN_UP"); v {
	case "", "open":
	case "closed":
		c.SignUpClosed = true
	default:
		refuse("ENTREGA_SIGN_UP", "is %q; use open or closed", v)
	}
	c.OIDC = web.OIDC{Issuer: getenv("ENTREGA_OIDC_ISSUER"), ClientID: getenv("ENTREGA_OIDC_CLIENT_ID"), ClientSecret: getenv("ENTREGA_OIDC_CLIENT_SECRET")}
	if given := c.OIDC.Issuer != ""; given != (c.OIDC.ClientID != "") || given != (c.OIDC.ClientSecret != "") {
		refuse("ENTREGA_OIDC_ISSUER", "goes with ENTREGA_OIDC_CLIENT_ID and ENTREGA_OIDC_CLIENT_SECRET: set all three, or none")
	}
	c.Mail = loadMail(getenv, refuse)
	if c.PublicURL == nil {
		c.PublicURL = &url.URL{Scheme: "http", Host: browsable(c.Listen)}
	}
	return c, errors.Join(problems...)
}

// ensureKey makes sure that there is a key. In private mode it lives in the data folder, made on first use; with a database of one's own it
// must be given, since every node needs the same.
func (c *Config) ensureKey() error {
	if c.SecretKey != nil {
		return nil
	}
	if c.DatabaseURL != "" {
		return errors.New("ENTREGA_SECRET_KEY: is required with DATABASE_URL, the same on every node. Make one with: openssl rand -base64 32")
	}
	file := filepath.Join(c.Data, keyFile)
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		raw, err = makeKeyFile(file)
	}
	if err != nil {
		return fmt.Errorf("read the secret key: %w", err)
	}
	if c.SecretKey, err = seal.ParseKey(strings.TrimSpace(string(raw))); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Lines are the settings for people to read, secrets redacted.
func (c Config) Lines() []string {
	database := "private, in " + c.Data
	if c.DatabaseURL != "" {
		database = redactURL(c.DatabaseURL)
	}
	key := "from ENTREGA_SECRET_KEY"
	if c.DatabaseURL == "" {
		key = "kept in " + filepath.Join(c.Data, keyFile) + ", unless ENTREGA_SECRET_KEY is set"
	}
	orNone := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	return []string{
		"listen        " + c.Listen,
		"admin listen  " + orNone(c.AdminListen),
		"public url    " + c.PublicURL.String(),
		"database      " + database,
		"secret key    " + key,
		"egress allow  " + orNone(strings.Join(c.EgressAllow, ", ")),
		"allow http    " + strconv.FormatBool(c.AllowHTTP),
		"policies      " + orNone(c.Policies),
		"mail          " + aboutMail(c.Mail),
	}
}

const settingsHelp = `Settings, from the environment:
  ENTREGA_LISTEN          address of panel and API (127.0.0.1:8080)
  ENTREGA_PUBLIC_URL      how people reach the panel (http://ENTREGA_LISTEN)
  ENTREGA_DATA            folder of the private Postgres and its key (./.entrega)
  DATABASE_URL            a Postgres of your own, instead of the private one
  ENTREGA_SECRET_KEY      32 bytes in base64; required with DATABASE_URL, else made in ENTREGA_DATA
  ENTREGA_SECRET_KEY_OLD  former keys, comma separated, that still open what they sealed
  ENTREGA_EGRESS_ALLOW    hosts or CIDRs, comma separated, that may be called though they are private
  ENTREGA_ALLOW_HTTP      true permits endpoints without TLS (false)
  ENTREGA_POLICIES        a YAML file that overrides retry policies
  ENTREGA_ADMIN_LISTEN    address of /metrics and pprof (off)
  ENTREGA_SIGN_UP         closed leaves it to admins to make accounts (open)
  ENTREGA_TRUSTED_PROXIES addresses or CIDRs, comma separated, that may say where a request comes from
  ENTREGA_PG_BIN          folder of the Postgres server binaries (searched for)
  ENTREGA_OIDC_ISSUER, ENTREGA_OIDC_CLIENT_ID, ENTREGA_OIDC_CLIENT_SECRET
                          an identity provider to log in by` + mailHelp

func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

func checkListen(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("is %q; use host:port, such as 127.0.0.1:8080", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("has the port %q; use a number from 1 to 65535, or 0 for any free one", port)
	}
	return nil
}

// browsable turns a listen address into one that a browser can open.
func browsable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// redactURL hides the passwords, wherever libpq takes them: before the host or among the parameters.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "set, but not readable"
	}
	params := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if params.Has(name) {
			params.Set(name, "xxxxx")
			u.RawQuery = params.Encode()
		}
	}
	return u.Redacted()
}

func split(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, found := strings.CutPrefix(pair, name+"="); found {
				return value
			}
		}
		return ""
	}
}

func TestLoadConfig_Defaults(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(env())
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.Data != "./.entrega" || c.AllowHTTP || c.PublicURL.String() != "http://127.0.0.1:8080" {
		t.Fatalf("%+v", c)
	}
}

func TestLoadConfig_RefusesEachWrongValueByName(t *testing.T) {
	t.Parallel()
	for _, pair := range []string{
		"ENTREGA_LISTEN=8080", "ENTREGA_LISTEN=127.0.0.1:http8", "ENTREGA_LISTEN=127.0.0.1:70000", "ENTREGA_ADMIN_LISTEN=x",
		"DATABASE_URL=mysql://x", "ENTREGA_SECRET_KEY=short", "ENTREGA_SECRET_KEY_OLD=short", "ENTREGA_EGRESS_ALLOW=10.0.0.0/99",
		"ENTREGA_ALLOW_HTTP=perhaps", "ENTREGA_PUBLIC_URL=entrega.example.com", "ENTREGA_PUBLIC_URL=https://entrega.example.com/below",
		"ENTREGA_PUBLIC_URL=https://u:p@entrega.example.com", "ENTREGA_PUBLIC_URL=https://entrega.example.com?x=y",
		"ENTREGA_TRUSTED_PROXIES=nobody", "ENTREGA_SIGN_UP=maybe", "ENTREGA_OIDC_ISSUER=https://id.example.com",
	} {
		name, _, _ := strings.Cut(pair, "=")
		if _, err := LoadConfig(env(pair)); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: %v", pair, err)
		}
	}
	// All at once, so that nobody mends them one start at a time.
	_, err := LoadConfig(env("ENTREGA_LISTEN=x", "ENTREGA_ALLOW_HTTP=x"))
	if err == nil || strings.Count(err.Error(), "ENTREGA_") != 2 {
		t.Fatal(err)
	}
}

func TestConfig_LinesTellNoSecret(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	c, err := LoadConfig(env("DATABASE_URL=postgres://u:topsecret@db.example/x?password=alsosecret&sslpassword=thirdsecret", "ENTREGA_SECRET_KEY="+key,
		"ENTREGA_OIDC_ISSUER=https://id.example.com", "ENTREGA_OIDC_CLIENT_ID=me", "ENTREGA_OIDC_CLIENT_SECRET=hushhush"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(c.Lines(), "\n")
	for _, secret := range []string{"topsecret", "alsosecret", "thirdsecret", key, "hushhush"} {
		if strings.Contains(all, secret) {
			t.Errorf("the settings as printed hold %q:\n%s", secret, all)
		}
	}
	if !strings.Contains(all, "db.example") {
		t.Error(all)
	}
}

func TestEnsureKey_IsMadeOnceInPrivateModeAndRequiredOtherwise(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := make(chan string, 20)
	for range 20 {
		go func() {
			c := Config{Data: dir}
			if err := c.ensureKey(); err != nil {
				t.Error(err)
			}
			keys <- string(c.SecretKey)
		}()
	}
	first := <-keys
	for range 19 {
		if <-keys != first {
			t.Error("two starts at once made two keys")
		}
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	c := Config{DatabaseURL: "postgres://x"}
	if err := c.ensureKey(); err == nil || !strings.Contains(err.Error(), "ENTREGA_SECRET_KEY") {
		t.Fatal(err)
	}
}

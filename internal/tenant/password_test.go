package tenant

import (
	"context"
	"errors"
	"strings"
	"testing"

	"entrega/internal/store"
)

// quick is a cost for tests that are not about the cost.
func quick() Argon2Params { return Argon2Params{Time: 1, MemoryKiB: 64, Threads: 1} }

// The hashes were made by the reference implementation's command line (argon2 … -id -l 32 -e, salt "entregasalt16byt").
func TestVerify_ReadsHashesOfTheReferenceImplementation(t *testing.T) {
	t.Parallel()
	const (
		ours     = "$argon2id$v=19$m=65536,t=3,p=4$ZW50cmVnYXNhbHQxNmJ5dA$BdsBPkgWU19WAdf6PFLKQDszXrszpy9gUEbRc+Gcd3o"
		small    = "$argon2id$v=19$m=64,t=1,p=1$ZW50cmVnYXNhbHQxNmJ5dA$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo"
		accented = "$argon2id$v=19$m=64,t=1,p=1$ZW50cmVnYXNhbHQxNmJ5dA$a/LojAYPpGhQpStFcHsikNjebRaWFVUPO04yggkddVg"
	)
	p := NewPasswords(Argon2Params{})
	for _, tt := range []struct {
		name, phc, password string
		matches, stale      bool
	}{
		{"today's cost", ours, "correct horse battery staple", true, false},
		{"today's cost, wrong", ours, "correct horse battery stapler", false, false},
		{"another cost", small, "correct horse battery staple", true, true},
		{"another cost, wrong", small, "", false, true},
		{"accents in one character", accented, "contrase\u00f1a de \u00e1rbol", true, true},
		{"accents in two characters", accented, "contrasen\u0303a de a\u0301rbol", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			matches, stale, err := p.Verify(t.Context(), tt.phc, tt.password)
			if err != nil || matches != tt.matches || stale != tt.stale {
				t.Errorf("Verify = %v, %v, %v, want %v, %v", matches, stale, err, tt.matches, tt.stale)
			}
		})
	}
}

func TestHash_HasTheSecondRecommendedCostOfRFC9106(t *testing.T) {
	t.Parallel()
	p := NewPasswords(Argon2Params{})
	phc, err := p.Hash(t.Context(), "correct horse battery staple")
	if err != nil {
		t.Fatalf("Hash: %v", err)
	}
	params, salt, hash, err := parsePHC(phc)
	if err != nil {
		t.Fatalf("parsePHC(%q): %v", phc, err)
	}
	if want := (Argon2Params{Time: 3, MemoryKiB: 65536, Threads: 4}); params != want || len(salt) != 16 || len(hash) != 32 {
		t.Errorf("hash has %+v, salt of %d, hash of %d bytes, want %+v, 16, 32", params, len(salt), len(hash), want)
	}
}

func TestHash_NeverRepeatsItself(t *testing.T) {
	t.Parallel()
	p := NewPasswords(quick())
	first, err1 := p.Hash(t.Context(), "correct horse battery staple")
	second, err2 := p.Hash(t.Context(), "correct horse battery staple")
	if err1 != nil || err2 != nil || first == second {
		t.Errorf("two hashes of one password are the same (%v, %v)", err1, err2)
	}
}

func TestVerify_NobodyHasNoPassword(t *testing.T) {
	t.Parallel()
	p := NewPasswords(quick())
	for _, password := range []string{"", "correct horse battery staple", strings.Repeat("x", 5000), "a\x00b"} {
		matches, stale, err := p.Verify(t.Context(), "", password)
		if err != nil || matches || stale {
			t.Errorf("Verify(no hash, %.20q) = %v, %v, %v", password, matches, stale, err)
		}
	}
}

// With both turns taken, only a call that goes on to hash can notice that ctx has ended.
func TestVerify_UnknownUserCostsAHashToo(t *testing.T) {
	t.Parallel()
	p := NewPasswords(quick())
	known, err := p.Hash(t.Context(), "correct horse battery staple")
	if err != nil {
		t.Fatal(err)
	}
	params, _, _, err := parsePHC(p.nobody)
	if err != nil || params != p.params {
		t.Fatalf("the hash for unknown users costs %+v (%v), want %+v", params, err, p.params)
	}

	for range passwordsInParallel {
		p.turn <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"known user":        func() error { _, _, err := p.Verify(ctx, known, "wrong horse battery staple"); return err },
		"unknown user":      func() error { _, _, err := p.Verify(ctx, "", "wrong horse battery staple"); return err },
		"too long password": func() error { _, _, err := p.Verify(ctx, known, strings.Repeat("x", 5000)); return err },
		"hash":              func() error { _, err := p.Hash(ctx, "wrong horse battery staple"); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want to wait for a turn until ctx ends", name, err)
		}
	}
	if got := len(p.turn); got != passwordsInParallel {
		t.Errorf("%d turns are taken, want the %d of before", got, passwordsInParallel)
	}
}

func TestVerify_RefusesWhatIsNoPHCString(t *testing.T) {
	t.Parallel()
	p := NewPasswords(quick())
	for _, phc := range []string{
		"correct horse battery staple",
		"$argon2i$v=19$m=64,t=1,p=1$ZW50cmVnYXNhbHQxNmJ5dA$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo",
		"$argon2id$v=16$m=64,t=1,p=1$ZW50cmVnYXNhbHQxNmJ5dA$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo",
		"$argon2id$v=19$m=64,t=0,p=1$ZW50cmVnYXNhbHQxNmJ5dA$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo",
		"$argon2id$v=19$m=64,t=1,p=0$ZW50cmVnYXNhbHQxNmJ5dA$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo",
		"$argon2id$v=19$m=64,t=1$ZW50cmVnYXNhbHQxNmJ5dA$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo",
		"$argon2id$v=19$m=64,t=1,p=1$ZW50cmVnYXNhbHQxNmJ5dA$",
		"$argon2id$v=19$m=64,t=1,p=1$$v8PeyTvUboSd8N1I4ZyQrdqx3IACzQWEI7YSp1hNnHo",
		"$argon2id$v=19$m=64,t=1,p=1$ZW50cmVnYXNhbHQxNmJ5dA$not base64",
	} {
		if matches, _, err := p.Verify(t.Context(), phc, "correct horse battery staple"); err == nil || matches {
			t.Errorf("Verify(%q) = %v, %v, want an error", phc, matches, err)
		}
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	const email = "ana.silva.lopes@acme.example"
	for _, tt := range []struct{ password, want string }{
		{"correct horse", ""},
		{"árvore cão pé", ""},
		{strings.Repeat("abcde", 204) + "abcd", ""}, // 1024 bytes
		{"pass 🔑 word 🐎", ""},

		{"", "12 characters"},
		{"elevenchars", "12 characters"},
		{strings.Repeat("abcde", 205), "1024 bytes"},
		{"ana.silva.lopes@acme.example", "e-mail"},
		{"ANA.Silva.Lopes", "e-mail"},
		{"aaaaaaaaaaaaaaaa", "different characters"},
		{"abcdabcdabcdabcd", "different characters"},
		{"correct\x00horse battery", "control"},
		{"correct\nhorse battery", "control"},
	} {
		var invalid store.InvalidError
		CheckPassword(&invalid, "password", tt.password, email)
		got := invalid.Sentence("password")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || len(invalid.Fields) > 1 {
			t.Errorf("CheckPassword(%.30q) says %q, want about %q", tt.password, got, tt.want)
		}
	}
}

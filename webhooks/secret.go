package webhooks

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"time"
)

// Standard Webhooks, section "Signature scheme": a symmetric secret is between 24 and 64 random bytes, written in base64
// behind whsec_. Ours are 32.
const (
	secretPrefix   = "whsec_"
	secretBytes    = 32
	minSecretBytes = 24
	maxSecretBytes = 64
)

// secretRule says in a sentence what parseSecret accepts.
const secretRule = "Give whsec_ followed by the base64 of 24 to 64 random bytes, or leave it out to get a new one."

var errSecretForm = errors.New("not a webhook secret")

// newSecretKey draws the bytes of a new secret.
func newSecretKey() []byte {
	key := make([]byte, secretBytes)
	// crypto/rand.Read never fails: it ends the program when the system has no randomness to give.
	_, _ = rand.Read(key)
	return key
}

// formatSecret writes a secret as receivers keep it.
func formatSecret(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// parseSecret reads what formatSecret writes. Its error never repeats the input.
func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		return nil, errSecretForm
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, errSecretForm
	}
	return key, nil
}

// secret is one opened signing secret of an endpoint.
type secret struct {
	id        string
	key       []byte
	createdAt time.Time
	// expiresAt is set by a rotation; zero while the secret is the newest.
	expiresAt time.Time
}

// liveKeys are the keys that sign at now, newest first as secrets are. An expired one never signs.
func liveKeys(secrets []secret, now time.Time) [][]byte {
	keys := make([][]byte, 0, len(secrets))
	for _, s := range secrets {
		if s.expiresAt.IsZero() || now.Before(s.expiresAt) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

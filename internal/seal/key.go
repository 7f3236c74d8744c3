package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KeySize is the length of a key in bytes: AES-256.
const KeySize = 32

// NewKey returns a random key.
func NewKey() []byte {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails: crypto/rand ends the program instead
	return key
}

// FormatKey writes a key as people keep it: standard base64.
func FormatKey(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// ParseKey reads what FormatKey wrote; white space around it, such as a file's last newline, is ignored. The error says
// what a key must look like and never repeats the input.
func ParseKey(s string) ([]byte, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, errors.New("the key is empty: it must be 32 bytes in base64")
	}
	key, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, errors.New("the key is not base64: it must be 32 bytes in base64")
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("the key has %d bytes: it must be 32 bytes in base64", len(key))
	}
	return key, nil
}

// KeyID names the key that sealed a value: eight hex digits, the first four bytes of the key's SHA-256. It needs no key,
// so it can count how much is still under an old one.
func KeyID(sealed []byte) (string, error) {
	if len(sealed) < overhead {
		return "", ErrTampered
	}
	return hex.EncodeToString(sealed[:keyIDSize]), nil
}

func idOf(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:keyIDSize])
}

func rawID(id string) []byte {
	raw, _ := hex.DecodeString(id) // made by idOf
	return raw
}

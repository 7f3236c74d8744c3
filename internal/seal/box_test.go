package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	table = "endpoint_secrets"
	row   = "secret_01"
)

// countingKey is 00 01 02 … 1f, the key of the vectors.
func countingKey() []byte {
	key := make([]byte, KeySize)
	for i := range key {
		key[i] = byte(i)
	}
	return key
}

func newBox(t *testing.T, key []byte, older ...[]byte) *Box {
	t.Helper()
	box, err := New(key, older...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return box
}

// The values were sealed by another implementation (OpenSSL through Node.js), so they pin the layout as well as the cipher.
func TestOpen_ReadsValuesSealedElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, sealed, want string }{
		{"text", "630dcd296465666768696a6b6c6d6e6f3f73ad031ab633e65f0f2f84bf9d9e70a1c74056d48d4015b05ef6ca6d", "whsec_example"},
		{"empty", "630dcd296465666768696a6b6c6d6e6f04ebbf6bf81901414c8c268212a4ae7e", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sealed, err := hex.DecodeString(tt.sealed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := newBox(t, countingKey()).Open(sealed, table, row)
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			if string(got) != tt.want {
				t.Errorf("Open = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSeal_OpensAgainAndNeverRepeatsItself(t *testing.T) {
	t.Parallel()
	box := newBox(t, NewKey())
	for _, plain := range [][]byte{{}, []byte("a"), bytes.Repeat([]byte{0}, 10_000)} {
		first, second := box.Seal(plain, table, row), box.Seal(plain, table, row)
		if bytes.Equal(first, second) {
			t.Errorf("two seals of %d bytes are the same", len(plain))
		}
		got, err := box.Open(first, table, row)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		if !bytes.Equal(got, plain) {
			t.Errorf("Open gives %d bytes back, want the %d that were sealed", len(got), len(plain))
		}
		if want := len(plain) + overhead; len(first) != want {
			t.Errorf("sealed value has %d bytes, want %d", len(first), want)
		}
	}
}

func TestOpen_RefusesAnotherPlace(t *testing.T) {
	t.Parallel()
	box := newBox(t, NewKey())
	sealed := box.Seal([]byte("whsec_x"), "ab", "cd")
	for _, place := range [][2]string{{"ab", "ce"}, {"aa", "cd"}, {"a", "bcd"}, {"abc", "d"}, {"", "abcd"}, {"cd", "ab"}} {
		if _, err := box.Open(sealed, place[0], place[1]); !errors.Is(err, ErrTampered) {
			t.Errorf("Open at table %q row %q: error %v, want ErrTampered", place[0], place[1], err)
		}
	}
}

func TestOpen_RefusesEachFlippedBit(t *testing.T) {
	t.Parallel()
	box := newBox(t, NewKey())
	sealed := box.Seal([]byte("whsec_x"), table, row)
	for bit := range len(sealed) * 8 {
		changed := bytes.Clone(sealed)
		changed[bit/8] ^= 1 << (bit % 8)

		_, err := box.Open(changed, table, row)
		var unknown *UnknownKeyError
		if bit/8 < keyIDSize {
			if !errors.As(err, &unknown) {
				t.Errorf("bit %d of the key id: error %v, want an UnknownKeyError", bit, err)
			}
		} else if !errors.Is(err, ErrTampered) {
			t.Errorf("bit %d: error %v, want ErrTampered", bit, err)
		}
	}
}

func TestOpen_RefusesACutValue(t *testing.T) {
	t.Parallel()
	box := newBox(t, NewKey())
	sealed := box.Seal([]byte("whsec_x"), table, row)
	for n := range sealed {
		if _, err := box.Open(sealed[:n], table, row); !errors.Is(err, ErrTampered) {
			t.Errorf("first %d bytes: error %v, want ErrTampered", n, err)
		}
	}
}

func TestOpen_UnknownKeySaysWhich(t *testing.T) {
	t.Parallel()
	sealed := newBox(t, countingKey()).Seal([]byte("x"), table, row)
	box := newBox(t, NewKey())

	_, err := box.Open(sealed, table, row)
	var unknown *UnknownKeyError
	if !errors.As(err, &unknown) {
		t.Fatalf("Open: error %v, want an UnknownKeyError", err)
	}
	if diff := cmp.Diff(&UnknownKeyError{KeyID: "630dcd29", KeyIDs: []string{box.KeyID()}}, unknown); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	for _, part := range []string{"630dcd29", box.KeyID()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name key %s", err, part)
		}
	}
}

func TestReseal_MovesAValueToTheCurrentKey(t *testing.T) {
	t.Parallel()
	oldKey, newKey := NewKey(), NewKey()
	sealed := newBox(t, oldKey).Seal([]byte("whsec_x"), table, row)
	box := newBox(t, newKey, oldKey)

	fresh, changed, err := box.Reseal(sealed, table, row)
	if err != nil || !changed {
		t.Fatalf("Reseal of an old value: changed %v, error %v", changed, err)
	}
	got, err := newBox(t, newKey).Open(fresh, table, row)
	if err != nil || string(got) != "whsec_x" {
		t.Errorf("the new key alone reads %q, error %v", got, err)
	}
	if id, err := KeyID(fresh); err != nil || id != box.KeyID() {
		t.Errorf("KeyID = %q, %v, want %q", id, err, box.KeyID())
	}

	again, changed, err := box.Reseal(fresh, table, row)
	if err != nil || changed || !bytes.Equal(again, fresh) {
		t.Errorf("Reseal of a current value: changed %v, error %v, same bytes %v", changed, err, bytes.Equal(again, fresh))
	}
}

func TestReseal_RefusesATamperedValueUnderTheCurrentKey(t *testing.T) {
	t.Parallel()
	box := newBox(t, NewKey())
	sealed := box.Seal([]byte("whsec_x"), table, row)
	if _, _, err := box.Reseal(sealed, table, "secret_02"); !errors.Is(err, ErrTampered) {
		t.Errorf("Reseal: error %v, want ErrTampered", err)
	}
}

func TestNew_RefusesBadKeys(t *testing.T) {
	t.Parallel()
	good := NewKey()
	for name, keys := range map[string][][]byte{
		"short":     {good[:31]},
		"long":      {append(bytes.Clone(good), 0)},
		"none":      {nil},
		"short old": {good, good[:16]},
		"same old":  {good, good},
	} {
		if _, err := New(keys[0], keys[1:]...); err == nil {
			t.Errorf("%s: New accepts it", name)
		}
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	key := NewKey()
	got, err := ParseKey("  " + FormatKey(key) + "\n")
	if err != nil || !bytes.Equal(got, key) {
		t.Fatalf("ParseKey does not read what FormatKey wrote: %v", err)
	}
	for _, tt := range []struct{ in, want string }{
		{"", "empty"},
		{" \n", "empty"},
		{"not base64 at all!", "not base64"},
		{FormatKey(key[:16]), "16 bytes"},
	} {
		_, err := ParseKey(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseKey(%q): error %v, want one about %q", tt.in, err, tt.want)
		}
		if in := strings.TrimSpace(tt.in); err != nil && in != "" && strings.Contains(err.Error(), in) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}

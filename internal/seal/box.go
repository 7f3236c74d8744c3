// Package seal keeps secrets unreadable in the database: AES-256-GCM under a key that lives outside it.
//
// A sealed value is the id of its key (4 bytes), a random nonce (12 bytes), the ciphertext and the tag (16 bytes). The
// table and the row it belongs to are associated data, so a value copied to another row or table does not open there.
// The package knows nothing of SQL: the caller reads and writes the rows.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	keyIDSize = 4
	nonceSize = 12
	tagSize   = 16
	// overhead is what sealing adds to a plain text.
	overhead = keyIDSize + nonceSize + tagSize
)

// ErrTampered means that a value does not open under the key it names: it was changed, cut, or belongs to another row.
var ErrTampered = errors.New("the sealed value was changed or belongs to another row")

// UnknownKeyError means that a value was sealed with a key that the Box was not given.
type UnknownKeyError struct {
	// KeyID is the id found in the value, KeyIDs are those the Box can open, the current one first.
	KeyID  string
	KeyIDs []string
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("sealed with key %s, which is not among the keys given (%v): start with the key that was in use when the value was written", e.KeyID, e.KeyIDs)
}

// Box seals with one current key and opens with that or any older one. It is safe for concurrent use.
//
// Nonces are random, so one key is good for 2^32 values (NIST SP 800-38D, section 8.3): far more than an installation
// has secrets.
type Box struct {
	current string
	ids     []string
	aeads   map[string]cipher.AEAD
}

// New returns a Box that seals with key and also opens what the older keys sealed. Each key is KeySize bytes.
func New(key []byte, older ...[]byte) (*Box, error) {
	b := &Box{aeads: make(map[string]cipher.AEAD, 1+len(older))}
	for _, k := range append([][]byte{key}, older...) {
		if len(k) != KeySize {
			return nil, fmt.Errorf("a key has %d bytes, want %d", len(k), KeySize)
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("make cipher: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("make GCM: %w", err)
		}
		id := idOf(k)
		if _, ok := b.aeads[id]; ok {
			return nil, fmt.Errorf("key %s is given twice, or shares its id with another", id)
		}
		b.aeads[id] = aead
		b.ids = append(b.ids, id)
	}
	b.current = b.ids[0]
	return b, nil
}

// KeyID names the key that Seal uses.
func (b *Box) KeyID() string { return b.current }

// Seal encrypts plain for one row of one table with the current key. Two calls never give the same bytes.
func (b *Box) Seal(plain []byte, table, row string) []byte {
	sealed := make([]byte, 0, overhead+len(plain))
	sealed = append(sealed, rawID(b.current)...)
	return b.aeads[b.current].Seal(sealed, nil, plain, associated(table, row))
}

// Open decrypts what Seal made for the same table and row. It fails with an *UnknownKeyError or with ErrTampered.
func (b *Box) Open(sealed []byte, table, row string) ([]byte, error) {
	id, err := KeyID(sealed)
	if err != nil {
		return nil, err
	}
	aead, ok := b.aeads[id]
	if !ok {
		return nil, &UnknownKeyError{KeyID: id, KeyIDs: b.ids}
	}
	plain, err := aead.Open(nil, nil, sealed[keyIDSize:], associated(table, row))
	if err != nil {
		return nil, ErrTampered
	}
	return plain, nil
}

// Reseal brings a value under the current key: it answers the bytes to store and whether they differ from what was
// there. A command that walks a table after a key change calls it for each row.
func (b *Box) Reseal(sealed []byte, table, row string) (fresh []byte, changed bool, err error) {
	plain, err := b.Open(sealed, table, row)
	if err != nil {
		return nil, false, err
	}
	if id, err := KeyID(sealed); err == nil && id == b.current {
		return sealed, false, nil
	}
	return b.Seal(plain, table, row), true, nil
}

// associated binds a value to its place. The length in front keeps ("ab", "c") apart from ("a", "bc").
func associated(table, row string) []byte {
	ad := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(table)+len(row)), uint32(len(table)))
	ad = append(ad, table...)
	return append(ad, row...)
}

package store

import (
	"fmt"

	"go.jetify.com/typeid"
)

// NewID makes a TypeID such as "event_01h455vb4pex5vsknk084sn02q". Its suffix is a UUIDv7 in base32, so ids made later
// sort later, to the millisecond.
//
// The prefix is a constant of the caller; one that breaks the TypeID rules (lower case ASCII and inner underscores, 63
// at most) is a mistake in the program and panics.
func NewID(prefix string) string {
	id, err := typeid.WithPrefix(prefix)
	if err != nil {
		panic(fmt.Sprintf("store: make an id with prefix %q: %v", prefix, err))
	}
	return id.String()
}

// Package good says what it owns.
package good

// Endpoint is documented.
type Endpoint struct{ URL string }

// Enable is documented.
func (e *Endpoint) Enable() {}

func (e Endpoint) String() string { return e.URL }

// A Lane may start with an article.
type Lane[T any] struct{}

// The states of a lane.
const (
	Open   = 1
	Closed = 2
)

// ErrGone is documented.
var ErrGone error

var (
	Limit = 3 // Limit is documented on its line.

	hidden = 4
)

type (
	// Window is documented in its group.
	Window int
)

type inner struct{}

func (inner) Exported() {}

func helper() {}

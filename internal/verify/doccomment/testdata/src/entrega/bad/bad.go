// This package does not say its name.
package bad // want `doccomment/package: package bad has no package comment; say above one package clause what it owns and what it must not know`

type Endpoint struct{} // want `doccomment/exported: exported type Endpoint has no doc comment; say what it promises, or do not export it`

func (e *Endpoint) Enable() {} // want `doccomment/exported: exported method Enable has no doc comment`

type Lane[T any] struct{} // want `doccomment/exported: exported type Lane`

func (Lane[T]) Drain() {} // want `doccomment/exported: exported method Drain`

// Makes an endpoint.
func New() {} // want `doccomment/exported: the comment of function New does not start with its name; write "New …"`

// Newest is another word.
func Newe() {} // want `doccomment/exported: the comment of function Newe does not start with its name`

package bad

// A comment at the end of a line documents a value, so the expectations of this
// file stand before the names.

const (
	/* want `doccomment/exported: exported const Open has no doc comment` */ Open = 1
)

var (
	/* want `doccomment/exported: exported var Limit has no doc comment` */ a, Limit = 1, 2
)

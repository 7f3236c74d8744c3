package views

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// FragmentHeader names the request header that asks for parts of a page: one
// name of a data-live element, or several with commas between them.
const FragmentHeader = "X-Fragment"

// Render writes a page, or, when fragments is the non-empty value of the
// X-Fragment header, only the named parts of it one after another. A name that
// the page does not have writes nothing. An answer varies by that header.
func Render(ctx context.Context, w io.Writer, page templ.Component, fragments string) error {
	if fragments == "" {
		return page.Render(ctx, w)
	}
	var ids []any
	for name := range strings.SplitSeq(fragments, ",") {
		ids = append(ids, strings.TrimSpace(name))
	}
	return templ.RenderFragments(ctx, w, page, ids...)
}

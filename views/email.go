package views

import (
	"html"
	"strings"

	"github.com/a-h/templ"
)

// email is an address that may be broken where a reader would: after an at sign
// or a dot, and never within a word.
func email(address string) templ.Component {
	broken := strings.NewReplacer("@", "@<wbr>", ".", ".<wbr>").Replace(html.EscapeString(address))
	return templ.Raw(broken)
}

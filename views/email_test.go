package views

import (
	"strings"
	"testing"
)

func TestEmail_BreaksBetweenItsPartsAndStaysText(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"ines.duarte@acme.example": "ines.<wbr>duarte@<wbr>acme.<wbr>example",
		"Command line":             "Command line",
		`<b>&"@x`:                  "&lt;b&gt;&amp;&#34;@<wbr>x",
	} {
		var b strings.Builder
		if err := email(address).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%q is drawn as %q, want %q", address, b.String(), want)
		}
	}
}

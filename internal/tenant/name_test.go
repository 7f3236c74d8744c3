package tenant

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	eighty := strings.Repeat("é", 80)
	for _, tt := range []struct{ in, want string }{
		{"Acme Market", "Acme Market"},
		{"  Acme  ", "Acme"},
		{"Loja São João 🚚", "Loja São João 🚚"},
		{"<script>alert(1)</script>", "<script>alert(1)</script>"}, // text is text: who shows it escapes it
		{eighty, eighty},

		{"", ""},
		{" \t\n", ""},
		{eighty + "é", ""},
		{"Acme\nMarket", ""},
		{"Acme\x00", ""},
		{"Acme\u202eteekraM", ""},
		{"Ac\u200bme", ""},
		{"Acme\xff", ""},
	} {
		got, problem := checkName(tt.in)
		if got != tt.want || (problem == "") != (tt.want != "") {
			t.Errorf("checkName(%q) = %q, %q, want %q", tt.in, got, problem, tt.want)
		}
	}
}

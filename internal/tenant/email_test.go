package tenant

import (
	"strings"
	"testing"
)

func TestNormalizeEmail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	for _, tt := range []struct{ in, want string }{
		{"ana@acme.example", "ana@acme.example"},
		{"  Ana.Silva+orders@ACME.Example \n", "ana.silva+orders@acme.example"},
		{"ana@bücher.example", "ana@xn--bcher-kva.example"},
		{"ANA@BÜCHER.example.", "ana@xn--bcher-kva.example"},
		{long + "@acme.example", long + "@acme.example"},
		{"o'neil@acme.example", "o'neil@acme.example"},

		{"", ""},
		{"ana", ""},
		{"ana@", ""},
		{"@acme.example", ""},
		{"ana@localhost", ""},
		{"ana@acme..example", ""},
		{"a na@acme.example", ""},
		{"ana@acme.example\r\nBcc: eve@evil.example", ""},
		{"ana\x00@acme.example", ""},
		{"Ana <ana@acme.example>", ""},
		{"<ana@acme.example>", ""},
		{"ana@acme.example, bob@acme.example", ""},
		{"ana(comment)@acme.example", ""},
		{`"ana silva"@acme.example`, ""},
		{"ana@[127.0.0.1]", ""},
		{"ána@acme.example", ""},
		{".ana@acme.example", ""},
		{"ana@eve@acme.example", ""},
		{long + "a@acme.example", ""},
		{"ana@" + strings.Repeat("a.", 130) + "example", ""},
		{"ana@acme\u202e.example", ""},
	} {
		got, problem := NormalizeEmail(tt.in)
		if got != tt.want {
			t.Errorf("NormalizeEmail(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if (problem == "") != (tt.want != "") {
			t.Errorf("NormalizeEmail(%q) says %q", tt.in, problem)
		}
		if again, _ := NormalizeEmail(got); again != got {
			t.Errorf("NormalizeEmail(%q) = %q: the normal form is not stable", got, again)
		}
	}
}

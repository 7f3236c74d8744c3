package tenant

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxNameRunes = 80

// checkName trims the name of a project or key and answers a sentence when it cannot be one. Invisible characters are
// refused: two names that look the same should be the same.
func checkName(s string) (name, problem string) {
	name = strings.TrimSpace(s)
	if name == "" {
		return "", "Enter a name."
	}
	if utf8.RuneCountInString(name) > maxNameRunes {
		return "", fmt.Sprintf("A name may have %d characters at most.", maxNameRunes)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return "", "A name may only hold letters, digits, signs and spaces."
		}
	}
	return name, ""
}

package web

import (
	"fmt"
	"strings"
)

// unknownSentence says that a name is not known, and which one was probably meant.
func unknownSentence(name string, known []string) string {
	shown := name
	if len(shown) > maxShownName {
		shown = strings.ToValidUTF8(shown[:maxShownName], "") + "…"
	}
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("There is no %q here. Did you mean %s?", shown, near)
	}
	return fmt.Sprintf("There is no %q here. There are: %s.", shown, strings.Join(known, ", "))
}

const maxShownName = 64

// nearest is the known name that the fewest typing mistakes turn into the given one, where a missing end is one mistake; ""
// when all are too far off.
func nearest(name string, known []string) string {
	if len(name) > maxShownName {
		return ""
	}
	name = strings.ToLower(name)
	best, fewest := "", len(name)/2+1
	for _, k := range known {
		lower := strings.ToLower(k)
		d := typos(name, lower)
		if strings.HasPrefix(lower, name) {
			d = min(d, 1)
		}
		if d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// typos is the Levenshtein distance of two short names in bytes: how many letters to insert, remove or replace.
func typos(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

package web

import (
	"bytes"
	"encoding/json"
	"iter"
)

// member is a name and its value in a JSON object, the value as it stands in the text.
type member struct {
	name  string
	value []byte
}

// membersOf walks the members of a JSON object in their order, repeated names included. The values are parts of the given
// text, byte for byte: this is how an event's data stays what its publisher wrote. The text must be a valid object.
func membersOf(object []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(object, 1)
		for object[i] != '}' {
			end := endOfString(object, i)
			name := nameOf(object[i:end])
			i = skipSpace(object, end)
			i = skipSpace(object, i+1) // The colon.
			end = endOfValue(object, i)
			if !yield(member{name: name, value: object[i:end]}) {
				return
			}
			i = skipComma(object, end)
		}
	}
}

// elementsOf walks the elements of a valid JSON array, each as it stands in the text.
func elementsOf(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(array, 1)
		for array[i] != ']' {
			end := endOfValue(array, i)
			if !yield(array[i:end]) {
				return
			}
			i = skipComma(array, end)
		}
	}
}

// nameOf reads a quoted name, which rarely has escapes in it.
func nameOf(quoted []byte) string {
	if !bytes.ContainsRune(quoted, '\\') {
		return string(quoted[1 : len(quoted)-1])
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // It is a valid string.
	return name
}

func skipSpace(text []byte, i int) int {
	for isSpace(text[i]) {
		i++
	}
	return i
}

func skipComma(text []byte, i int) int {
	i = skipSpace(text, i)
	if text[i] == ',' {
		i = skipSpace(text, i+1)
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// endOfValue is the index behind the value that starts at i.
func endOfValue(text []byte, i int) int {
	switch text[i] {
	case '"':
		return endOfString(text, i)
	case '{', '[':
		return endOfNested(text, i)
	default:
		for i < len(text) && !isSpace(text[i]) && text[i] != ',' && text[i] != ']' && text[i] != '}' {
			i++
		}
		return i
	}
}

func endOfNested(text []byte, i int) int {
	for depth := 0; ; {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// endOfString jumps from quote to quote and from backslash to backslash, each part of the text once.
func endOfString(text []byte, i int) int {
	i++
	for quote := i + bytes.IndexByte(text[i:], '"'); ; quote = i + bytes.IndexByte(text[i:], '"') {
		for i <= quote {
			escape := bytes.IndexByte(text[i:quote], '\\')
			if escape < 0 {
				return quote + 1
			}
			i += escape + 2
		}
	}
}

package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"entrega/internal/store"
)

// maxFieldErrors bounds how much of a bad body is talked about.
const maxFieldErrors = 20

// malformedError is a body that is not what it says: no JSON, or none of the form that every call takes.
type malformedError struct{ sentence string }

func (e *malformedError) Error() string { return e.sentence }

// decode reads a JSON object into the struct that into points to. Names must be those of the json tags to the letter. A name
// that is unknown or given twice, and a value of the wrong type, is a *store.InvalidError; what is no JSON object at all is a
// *malformedError. null leaves a field as if it was not given. Only a pointer can tell the two apart: tagged nullable it points to
// the zero value, untagged it takes no null.
func decode(body []byte, into any) error {
	object, err := objectIn(body)
	if err != nil {
		return err
	}
	var bad store.InvalidError
	decodeObject(object, "", reflect.ValueOf(into).Elem(), &bad)
	return bad.OrNil()
}

// objectIn checks that the body is one JSON object and returns it without the blanks around it.
func objectIn(body []byte) ([]byte, error) {
	switch {
	case !utf8.Valid(body):
		return nil, &malformedError{"The body is not UTF-8, which JSON must be (RFC 8259, section 8.1)."}
	case !json.Valid(body):
		return nil, &malformedError{"The body is not valid JSON: " + syntaxSentence(body)}
	}
	object := bytes.Trim(body, " \t\r\n")
	if object[0] != '{' {
		return nil, &malformedError{"The body must be a JSON object, in braces."}
	}
	return object, nil
}

func syntaxSentence(body []byte) string {
	var raw json.RawMessage
	err := json.Unmarshal(body, &raw)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v, at byte %d.", err, syntax.Offset)
	}
	return fmt.Sprintf("%v.", err)
}

// decodeObject reads the members of an object into a struct; path is what stands before their names in errors.
func decodeObject(object []byte, path string, into reflect.Value, bad *store.InvalidError) {
	fields := jsonFields(into.Type())
	seen := make([]bool, len(fields))
	for m := range membersOf(object) {
		i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return jsonName(f) == m.name })
		switch {
		case len(bad.Fields) >= maxFieldErrors:
			return
		case i < 0:
			bad.Add(path+m.name, unknownSentence(m.name, namesOf(fields)))
		case seen[i]:
			bad.Add(path+m.name, givenTwice)
		default:
			seen[i] = true
			decodeField(m.value, path+m.name, fields[i], into.FieldByIndex(fields[i].Index), bad)
		}
	}
}

func decodeField(value []byte, path string, field reflect.StructField, into reflect.Value, bad *store.InvalidError) {
	null, pointer := string(value) == "null", into.Kind() == reflect.Pointer
	if pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	switch {
	case null && pointer && field.Tag.Get("nullable") != "true":
		bad.Add(path, typeSentence(into.Type()))
	case null:
	default:
		before := len(bad.Fields)
		decodeValue(value, path, into, bad)
		if s := rangeSentence(field, into); s != "" && len(bad.Fields) == before {
			bad.Add(path, s)
		}
	}
}

const givenTwice = "This field is given twice."

func decodeValue(value []byte, path string, into reflect.Value, bad *store.InvalidError) {
	switch {
	case into.Type() == reflect.TypeFor[time.Time]():
		into.Set(reflect.ValueOf(readInstant(value, path, bad)))
	case into.Kind() == reflect.Struct && value[0] == '{':
		decodeObject(value, path+".", into, bad)
	case into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct && value[0] == '[':
		decodeObjects(value, path, into, bad)
	default:
		if err := json.Unmarshal(value, into.Addr().Interface()); err != nil {
			bad.Add(path, typeSentence(into.Type()))
		}
	}
}

func decodeObjects(array []byte, path string, into reflect.Value, bad *store.InvalidError) {
	i := 0
	for element := range elementsOf(array) {
		item := reflect.New(into.Type().Elem()).Elem()
		decodeValue(element, fmt.Sprintf("%s[%d]", path, i), item, bad)
		into.Set(reflect.Append(into, item))
		i++
	}
}

// jsonFields are the fields of a struct that have a name in JSON, those of embedded structs included.
func jsonFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return jsonName(f) == "" })
}

func namesOf(fields []reflect.StructField) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = jsonName(f)
	}
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// rangeSentence holds a number to the minimum and maximum that its tags show in the document. The domain cannot tell a 0 that
// was given from one that was not.
func rangeSentence(f reflect.StructField, value reflect.Value) string {
	least, err := strconv.ParseFloat(f.Tag.Get("minimum"), 64)
	if err != nil {
		return ""
	}
	most, err := strconv.ParseFloat(f.Tag.Get("maximum"), 64)
	if err != nil {
		most = math.Inf(1)
	}
	n := 0.0
	if value.CanInt() {
		n = float64(value.Int())
	} else {
		n = value.Float()
	}
	switch {
	case n >= least && n <= most:
		return ""
	case math.IsInf(most, 1):
		return fmt.Sprintf("Give a number from %v on.", least)
	default:
		return fmt.Sprintf("Give a number from %v to %v.", least, most)
	}
}

// typeSentence asks for a value of the right type.
func typeSentence(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "Give a text, in double quotes."
	case reflect.Bool:
		return "Give true or false."
	case reflect.Int, reflect.Int64:
		return "Give a whole number, without quotes."
	case reflect.Float64:
		return "Give a number, without quotes."
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "Give a list of objects."
		}
		return "Give a list of texts."
	case reflect.Map:
		return "Give an object whose values are texts."
	default:
		return "Give an object."
	}
}

func readText(value []byte, field string, bad *store.InvalidError) string {
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		bad.Add(field, typeSentence(reflect.TypeFor[string]()))
	}
	return s
}

const instantSentence = "Give a time in RFC 3339, such as 2026-03-01T12:00:00Z."

func readInstant(value []byte, field string, bad *store.InvalidError) time.Time {
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		bad.Add(field, instantSentence)
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil || at.IsZero() {
		bad.Add(field, instantSentence)
	}
	return at
}

func readTexts(value []byte, field string, bad *store.InvalidError) map[string]string {
	var m map[string]string
	if err := json.Unmarshal(value, &m); err != nil {
		bad.Add(field, typeSentence(reflect.TypeFor[map[string]string]()))
	}
	return m
}

// encode writes an answer. Whoever it is for may be gone, which is no mistake of ours.
func encode(w io.Writer, v any) error {
	if own, ok := v.(interface{ writeJSON(w io.Writer) error }); ok {
		return own.writeJSON(w)
	}
	text, err := encoded(v)
	if err != nil {
		return err
	}
	_, _ = w.Write(text)
	return nil
}

// encoded is v as JSON with a line feed behind it. Text is left as it is: nobody embeds these answers in HTML.
func encoded(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return out.Bytes(), nil
}

// unmarshalNothing stands where huma wants a decoder. It is never asked, because no input has a body that huma knows of.
func unmarshalNothing([]byte, any) error {
	return errors.New("bodies are read by decode")
}

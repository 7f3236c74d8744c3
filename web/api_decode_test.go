package web

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
)

func TestMembersOf_KeepsEachValueByteForByte(t *testing.T) {
	t.Parallel()
	for object, want := range map[string][]string{
		`{}`:              nil,
		" {\n} ":          nil,
		`{"a":1}`:         {"a=1"},
		`{ "a" : 1e400 }`: {"a=1e400"},
		"{\"a\":\t{ \"b\" : [ 1 ,2 ] }\r\n, \"c\":\"x\"}": {"a={ \"b\" : [ 1 ,2 ] }", `c="x"`},
		`{"a":"}\"]{","b":[["]"],{"}":"{"}]}`:             {`a="}\"]{"`, `b=[["]"],{"}":"{"}]`},
		`{"a\u0062\"":null,"a":true,"a":-0.0}`:            {`ab"=null`, "a=true", "a=-0.0"},
		`{"\\":"\\"}`:                                     {`\="\\"`},
	} {
		var got []string
		for m := range membersOf([]byte(strings.TrimSpace(object))) {
			got = append(got, m.name+"="+string(m.value))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", object, diff)
		}
	}
}

func TestElementsOf_KeepsEachElementByteForByte(t *testing.T) {
	t.Parallel()
	var got []string
	for e := range elementsOf([]byte("[ 1,{\"a\": [ ] } , \"],\" ,[ [] ],null\n]")) {
		got = append(got, string(e))
	}
	if diff := cmp.Diff([]string{"1", `{"a": [ ] }`, `"],"`, "[ [] ]", "null"}, got); diff != "" {
		t.Error(diff)
	}
	for range elementsOf([]byte(`[ ]`)) {
		t.Error("an empty list has an element")
	}
}

// Whatever encoding/json takes for an object splits into members that, put together again, mean the same.
func FuzzMembersOf(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[{"c":"\u00e9\\"}],"":null}`, `{ "a" : { } , "a":"\"" }`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, err := objectIn([]byte(text))
		if err != nil {
			return
		}
		again := map[string]json.RawMessage{}
		for m := range membersOf(object) {
			if !json.Valid(m.value) {
				t.Fatalf("%q has the member %q", text, m.value)
			}
			again[m.name] = m.value
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(object, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	})
}

type decodeSample struct {
	_       struct{}          `additionalProperties:"false"`
	Name    string            `json:"name"`
	Count   int               `json:"count" minimum:"1" maximum:"64"`
	Rate    *float64          `json:"rate" nullable:"true" minimum:"0.5"`
	Hours   *int              `json:"hours"`
	Open    bool              `json:"open"`
	Tags    []string          `json:"tags"`
	Facts   map[string]string `json:"facts"`
	At      time.Time         `json:"at"`
	Answers []struct {
		Class string `json:"class"`
		Took  int64  `json:"took" minimum:"0" maximum:"10"`
	} `json:"answers"`
}

func TestDecode_SaysWhatIsWrongWithEachField(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]map[string]string{
		`{"name":"x","count":64,"rate":null,"hours":0,"open":true,"tags":["a"],"facts":{"k":"v"},"at":"2026-01-02T03:04:05.6+01:00","answers":[{"class":"x"}]}`: {},
		`{"name":null,"count":null,"at":null,"answers":null}`: {},
		`{"nmae":"x"}`:                           {"nmae": `There is no "nmae" here. Did you mean name?`},
		`{"Name":"x"}`:                           {"Name": `There is no "Name" here. Did you mean name?`},
		`{"zzzzzzzzzz":1}`:                       {"zzzzzzzzzz": `There is no "zzzzzzzzzz" here. There are: name, count, rate, hours, open, tags, facts, at, answers.`},
		`{"name":"x","name":"y"}`:                {"name": "This field is given twice."},
		`{"name":1,"open":"true"}`:               {"name": "Give a text, in double quotes.", "open": "Give true or false."},
		`{"count":"1"}`:                          {"count": "Give a whole number, without quotes."},
		`{"count":1.5}`:                          {"count": "Give a whole number, without quotes."},
		`{"count":1e400}`:                        {"count": "Give a whole number, without quotes."},
		`{"count":0}`:                            {"count": "Give a number from 1 to 64."},
		`{"count":65}`:                           {"count": "Give a number from 1 to 64."},
		`{"rate":0.4}`:                           {"rate": "Give a number from 0.5 on."},
		`{"rate":"fast"}`:                        {"rate": "Give a number, without quotes."},
		`{"hours":null}`:                         {"hours": "Give a whole number, without quotes."},
		`{"tags":"a"}`:                           {"tags": "Give a list of texts."},
		`{"tags":[1]}`:                           {"tags": "Give a list of texts."},
		`{"facts":{"k":1}}`:                      {"facts": "Give an object whose values are texts."},
		`{"at":"2026-01-02"}`:                    {"at": instantSentence},
		`{"at":1767323045}`:                      {"at": instantSentence},
		`{"at":"0001-01-01T00:00:00Z"}`:          {"at": instantSentence},
		`{"answers":{}}`:                         {"answers": "Give a list of objects."},
		`{"answers":[{"class":"x"},{"clas":1}]}`: {"answers[1].clas": `There is no "clas" here. Did you mean class?`},
		`{"answers":[{"took":11}]}`:              {"answers[0].took": "Give a number from 0 to 10."},
		`{"answers":[7]}`:                        {"answers[0]": "Give an object."},
	} {
		var into decodeSample
		got := map[string]string{}
		var invalid *store.InvalidError
		if err := decode([]byte(body), &into); errors.As(err, &invalid) {
			for _, f := range invalid.Fields {
				got[f.Field] = f.Sentence
			}
		} else if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

func TestDecode_TellsNullFromNothingWhereItMatters(t *testing.T) {
	t.Parallel()
	var given, absent decodeSample
	if err := errors.Join(decode([]byte(`{"rate":null}`), &given), decode([]byte(`{}`), &absent)); err != nil {
		t.Fatal(err)
	}
	if given.Rate == nil || *given.Rate != 0 || absent.Rate != nil {
		t.Errorf("null reads %v, nothing reads %v", given.Rate, absent.Rate)
	}
}

func TestDecode_RefusesWhatIsNoJSONObject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                 "The body is not valid JSON: unexpected end of JSON input, at byte 0.",
		`{`:                "The body is not valid JSON: unexpected end of JSON input, at byte 1.",
		`{"a":1}}`:         "The body is not valid JSON: invalid character '}' after top-level value, at byte 8.",
		`{"a":01}`:         "The body is not valid JSON: invalid character '1' after object key:value pair, at byte 7.",
		`{'a':1}`:          `The body is not valid JSON: invalid character '\'' looking for beginning of object key string, at byte 2.`,
		`{"a":NaN}`:        "The body is not valid JSON: invalid character 'N' looking for beginning of value, at byte 6.",
		"{\"a\":\"\xff\"}": "The body is not UTF-8, which JSON must be (RFC 8259, section 8.1).",
		`[]`:               "The body must be a JSON object, in braces.",
		` "a" `:            "The body must be a JSON object, in braces.",
		`null`:             "The body must be a JSON object, in braces.",
		"\ufeff{}":         "The body is not valid JSON: invalid character 'ï' looking for beginning of value, at byte 1.",
	} {
		var malformed *malformedError
		if err := decode([]byte(body), &decodeSample{}); !errors.As(err, &malformed) || malformed.sentence != want {
			t.Errorf("%q: %v\nwant %s", body, err, want)
		}
	}
	deep := `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}"
	if err := decode([]byte(deep), &decodeSample{}); err == nil {
		t.Error("a body 20,000 levels deep was read")
	}
}

func TestDecode_TalksAboutTwentyFieldsAtMost(t *testing.T) {
	t.Parallel()
	body := "{" + strings.TrimSuffix(strings.Repeat(`"x":1,`, 40_000), ",") + "}"
	var invalid *store.InvalidError
	if err := decode([]byte(body), &decodeSample{}); !errors.As(err, &invalid) || len(invalid.Fields) != maxFieldErrors {
		t.Errorf("%v", err)
	}
}

func TestNearest_FindsTheFewestTypos(t *testing.T) {
	t.Parallel()
	known := []string{"type", "data", "id", "subscriber", "occurredAt", "expiresAt", "metadata"}
	for name, want := range map[string]string{"typ": "type", "subcriber": "subscriber", "occured_at": "occurredAt", "ID": "id", "meta": "metadata", "dat": "data",
		"payload": "", "x": "", "expires": "expiresAt", strings.Repeat("type", 1000): ""} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
	if !slices.Contains(eventFields, nearest("Data", eventFields)) {
		t.Error("a name in another case is far off")
	}
}

// BenchmarkDecodeEvent is the part of a publish that is ours: what comes before the one statement.
func BenchmarkDecodeEvent(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "200KiB": 200 << 10} {
		body := []byte(`{"type":"order.created","id":"order-1042-created","subscriber":"acme","occurredAt":"2026-03-01T12:00:00Z",` +
			`"metadata":{"source":"shop"},"data":{"text":"` + strings.Repeat("x", size) + `"}}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				object, err := objectIn(body)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := decodeEvent(object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

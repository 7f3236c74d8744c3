package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/web"
)

const anEvent = `{"type":"order.created","data":{"order":1}}`

func TestPublish_AnswersTheIDAndStoresEverything(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)

	first := c.do("POST", "/v1/events", anEvent).is(202)
	if !strings.HasPrefix(first.text("id"), "event_") || first.at("duplicate") != false || len(first.body) != 2 {
		t.Errorf("%s", first.raw)
	}
	c.do("POST", "/v1/events", `{"type":"order.paid","data":null,"id":"own-1","subscriber":"acme","occurredAt":"2026-01-02T03:04:05.123456+01:00",
		"expiresAt":"2100-01-01T00:00:00Z","metadata":{"source":"shop"}}`).is(202)
	c.do("POST", "/v1/events", `{"type":"order.paid","data":1,"id":null,"subscriber":null,"occurredAt":null,"expiresAt":null,"metadata":null}`).is(202)

	got := c.do("GET", "/v1/events/own-1", nil).is(200)
	want := map[string]any{"id": "own-1", "type": "order.paid", "subscriber": "acme", "occurredAt": "2026-01-02T02:04:05.123456Z", "expiresAt": "2100-01-01T00:00:00Z",
		"metadata": map[string]any{"source": "shop"}, "createdAt": got.text("createdAt"), "dataBytes": json.Number("4"), "state": "waiting",
		"deliveryCount": json.Number("0"), "skippedCounts": map[string]any{}, "deliveries": []any{}, "skipped": []any{}, "data": nil}
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Error(diff)
	}
}

func TestPublish_IsLoggedOnlyWhereItIsRefused(t *testing.T) {
	t.Parallel()
	p := setup(t)
	j := p.withJournal()
	c := p.api(p.ours)
	c.do("POST", "/v1/events", anEvent).is(202)
	c.do("POST", "/v1/events/batch", `{"events":[`+anEvent+`]}`).is(202)
	if log := j.text(); strings.Contains(log, "route=/v1/events") {
		t.Errorf("what was taken is logged:\n%s", log)
	}
	c.do("POST", "/v1/events", `{}`).is(422)
	c.do("GET", "/v1/events", nil).is(200)
	if log := j.text(); strings.Count(log, "route=/v1/events ") != 2 {
		t.Errorf("what was refused, or asked for, is not logged:\n%s", log)
	}
}

func TestPublish_DataComesBackByteForByte(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for i, data := range []string{
		`{"a":1,"a":2,"b":{"c":[]}}`,
		"{ \"spaced\" :\t[ 1 ,\n2 ] , \"crlf\":\r\n\"x\" }",
		`[12345678901234567890,1e400,-0,0.10,1E+2,100000000000000000000000000000000.5]`,
		`"\u00e9 \ud83d\ude00 \/ \u0000 < > & \u2028 ` + "é 😀 \u2028" + `"`,
		`"lone surrogate \ud800"`,
		`12345678901234567890`,
		`true`, `null`, `""`, `{}`,
		`"}\"]{"`,
	} {
		id := fmt.Sprint("verbatim-", i)
		c.do("POST", "/v1/events", `{"data" : `+data+" ,\n\"type\":\"x\",\"id\":\""+id+`"}`).is(202)
		got := c.do("GET", "/v1/events/"+id, nil).is(200)
		if want := `"data":` + data + "}\n"; !bytes.HasSuffix(got.raw, []byte(want)) {
			t.Errorf("the answer ends with\n%s\nwant\n%s", got.raw[max(0, len(got.raw)-len(want)):], want)
		}
		var stored []byte
		p.scan(&stored, `select data from events where id = $1`, id)
		if string(stored) != data {
			t.Errorf("stored %q, want %q", stored, data)
		}
		if d := c.do("POST", "/v1/events", `{"data":`+data+`,"type":"x","id":"`+id+`"}`).is(202); d.at("duplicate") != true {
			t.Errorf("%s", d.raw)
		}
	}
}

func TestPublish_SameIDOrKeyWithOtherContentIsAConflict(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	keyed := c.with("Idempotency-Key", "key 1")

	first := keyed.do("POST", "/v1/events", anEvent).is(202)
	again := keyed.do("POST", "/v1/events", anEvent).is(202)
	if again.text("id") != first.text("id") || again.at("duplicate") != true {
		t.Errorf("%s then %s", first.raw, again.raw)
	}
	keyed.do("POST", "/v1/events", `{"type":"order.created","data":{"order": 1}}`).problem(409, "idempotency_mismatch")

	withID := `{"type":"order.created","data":1,"id":"a"}`
	c.do("POST", "/v1/events", withID).is(202)
	if d := c.do("POST", "/v1/events", withID).is(202); d.text("id") != "a" || d.at("duplicate") != true {
		t.Errorf("%s", d.raw)
	}
	c.do("POST", "/v1/events", `{"type":"order.created","data":2,"id":"a"}`).problem(409, "idempotency_mismatch")

	// Another project's ids and keys are its own.
	theirs := p.api(p.theirs).with("Idempotency-Key", "key 1")
	if d := theirs.do("POST", "/v1/events", `{"type":"order.created","data":3}`).is(202); d.at("duplicate") != false {
		t.Errorf("%s", d.raw)
	}
}

func TestPublish_FiftyAtOnceWithOneIDMakeOneEvent(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for _, test := range []struct {
		name, body string
		client     *apiClient
	}{
		{"id", `{"type":"order.created","data":1,"id":"same"}`, c},
		{"key", anEvent, c.with("Idempotency-Key", "same")},
	} {
		answers := make([]answered, 50)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				var err error
				if answers[i], err = test.client.try(p.ctx, "POST", "/v1/events", test.body); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ids, firsts := map[string]bool{}, 0
		for _, a := range answers {
			ids[a.is(202).text("id")] = true
			if a.at("duplicate") == false {
				firsts++
			}
		}
		var stored int
		p.scan(&stored, `select count(*) from events where id = any($1)`, slices.Collect(maps.Keys(ids)))
		if len(ids) != 1 || firsts != 1 || stored != 1 {
			t.Errorf("by %s: %d ids, %d of them new, %d events", test.name, len(ids), firsts, stored)
		}
	}
}

func TestPublish_NamesEveryWrongField(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	const typeRule = "Use letters, digits and underscores in parts joined by dots or hyphens, such as order.created; 128 characters at most."
	for body, want := range map[string]map[string]string{
		`{}`:                                    {"type": typeRule, "data": "Give the JSON that receivers get."},
		`{"type":"a b","data":1}`:               {"type": typeRule},
		`{"type":"a","data":1,"subcriber":"x"}`: {"subcriber": `There is no "subcriber" here. Did you mean subscriber?`},
		`{"type":"a","Data":1}`:                 {"Data": `There is no "Data" here. Did you mean data?`},
		`{"type":"a","data":1,"data":2}`:        {"data": "This field is given twice."},
		`{"type":1,"data":1,"id":2,"occurredAt":"yesterday","metadata":["x"]}`: {"type": "Give a text, in double quotes.", "id": "Give a text, in double quotes.",
			"occurredAt": "Give a time in RFC 3339, such as 2026-03-01T12:00:00Z.", "metadata": "Give an object whose values are texts."},
		`{"type":"a","data":1,"id":"","subscriber":""}`: {"id": "This is empty. Give 1 to 128 characters, or leave it out.",
			"subscriber": "This is empty. Give 1 to 128 characters, or leave it out."},
		`{"type":"a","data":1,"id":"a/b"}`:                                         {"id": "Use 1 to 128 letters, digits and any of . _ : - or leave it out."},
		`{"type":"a","data":1,"expiresAt":"2020-01-01T00:00:00Z"}`:                 {"expiresAt": "The time must lie in the future."},
		`{"type":"a","data":1,"occurredAt":"1969-01-01T00:00:00Z"}`:                {"occurredAt": "The time must lie in the years 1970 to 9999."},
		`{"type":"a","data":1,"subscriber":"a\u0000b"}`:                            {"subscriber": "Use 1 to 128 characters without control characters, or leave it out."},
		`{"type":"a","data":1,"metadata":{"` + strings.Repeat("k", 65) + `":"v"}}`: {"metadata": "A key takes 1 to 64 characters without control characters."},
	} {
		if diff := cmp.Diff(want, c.do("POST", "/v1/events", body).problem(422, "invalid")); diff != "" {
			t.Errorf("%.80s: %s", body, diff)
		}
	}
	var stored int
	p.scan(&stored, `select count(*) from events`)
	if stored != 0 {
		t.Errorf("%d events were stored", stored)
	}
	for _, key := range []string{"", strings.Repeat("k", 241), "naïve"} {
		if fields := c.with("Idempotency-Key", key).do("POST", "/v1/events", anEvent).problem(422, "invalid"); fields["Idempotency-Key"] == "" {
			t.Errorf("the key %.10q: %v", key, fields)
		}
	}
}

func TestPublish_BodyMayTake256KiB(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	body := func(size int) string {
		const frame = `{"type":"a","data":""}`
		return `{"type":"a","data":"` + strings.Repeat("x", size-len(frame)) + `"}`
	}
	c.do("POST", "/v1/events", body(256<<10)).is(202)
	c.do("POST", "/v1/events", body(256<<10+1)).problem(413, "body_too_large")
	c.do("POST", "/v1/events", body(4<<20)).problem(413, "body_too_large")
}

func TestPublishBatch_ALargeOnePassesTheGate(t *testing.T) {
	t.Parallel()
	p := setup(t)
	gate := store.NewGate(2)
	p.serve("http", func(o *web.Options) { o.Gate = gate })
	c := p.api(p.ours)
	for range 2 {
		defer gate.Enter(t.Context(), 16)()
	}
	took := func(body string) time.Duration {
		start := time.Now()
		c.do("POST", "/v1/events/batch", body).is(202)
		return time.Since(start)
	}
	event := `{"type":"order.created","data":"` + strings.Repeat("x", 1<<10) + `"}`
	if d := took(`{"events":[` + strings.Repeat(event+",", 15) + event + `]}`); d < 250*time.Millisecond {
		t.Errorf("a batch of 16 KiB was stored in %s, past a full gate", d)
	}
}

func TestPublishBatch_EachEventAnswersForItself(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	c.do("POST", "/v1/events", `{"type":"order.created","data":1,"id":"before"}`).is(202)
	a := c.do("POST", "/v1/events/batch", `{"events":[
		{"type":"order.created","data":{"n": 1.0},"id":"new"},
		{"type":"order.created","data":1,"id":"before"},
		{"type":"order.created","data":2,"id":"before"},
		{"type":"no type","data":1},
		{"type":"order.created","dta":1},
		17,
		{"type":"order.created","data":{"n": 1.0},"id":"new"},
		{"type":"order.created","data":1e400}]}`).is(202)
	items := a.list("data")
	fresh, _ := items[7].(map[string]any)["id"].(string)
	refused := func(status int, code, detail string, errors ...any) map[string]any {
		if errors == nil {
			errors = []any{}
		}
		return map[string]any{"error": map[string]any{"status": json.Number(fmt.Sprint(status)), "code": code, "detail": detail, "errors": errors}}
	}
	field := func(name, detail string) any { return map[string]any{"field": name, "detail": detail} }
	const typeRule = "Use letters, digits and underscores in parts joined by dots or hyphens, such as order.created; 128 characters at most."
	const unknown = `There is no "dta" here. Did you mean data?`
	want := []any{
		map[string]any{"id": "new", "duplicate": false},
		map[string]any{"id": "before", "duplicate": true},
		refused(409, "idempotency_mismatch", "before was published before with other content. Use a new id for a new event."),
		refused(422, "invalid", "type: "+typeRule, field("type", typeRule)),
		refused(422, "invalid", "dta: "+unknown, field("dta", unknown)),
		refused(400, "malformed_json", "An event must be a JSON object, in braces."),
		map[string]any{"id": "new", "duplicate": true},
		map[string]any{"id": fresh, "duplicate": false},
	}
	if diff := cmp.Diff(want, items); diff != "" || !strings.HasPrefix(fresh, "event_") {
		t.Error(diff, fresh)
	}
	if a.number("accepted") != 4 || a.number("refused") != 4 {
		t.Errorf("%s", a.raw)
	}
	if got := c.do("GET", "/v1/events/new", nil).is(200); !bytes.Contains(got.raw, []byte(`"data":{"n": 1.0}}`)) {
		t.Errorf("%s", got.raw)
	}
}

func TestPublishBatch_KeyMakesASecondOneADuplicate(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours).with("Idempotency-Key", strings.Repeat("k", 240))
	var events []any
	for range 12 {
		events = append(events, map[string]any{"type": "a", "data": 1})
	}
	first := c.do("POST", "/v1/events/batch", map[string]any{"events": events}).is(202)
	again := c.do("POST", "/v1/events/batch", map[string]any{"events": events}).is(202)
	for i, item := range again.list("data") {
		item, before := item.(map[string]any), first.list("data")[i].(map[string]any)
		if item["id"] != before["id"] || item["duplicate"] != true || before["duplicate"] != false {
			t.Errorf("item %d: %v then %v", i, before, item)
		}
	}
}

func TestPublishBatch_RefusesAWrongWhole(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	many := strings.TrimSuffix(strings.Repeat(anEvent+",", 1001), ",")
	for body, want := range map[string]string{
		`{}`:                        "Give a list of events.",
		`{"events":null}`:           "Give a list of events.",
		`{"events":{}}`:             "Give a list of events.",
		`{"events":[]}`:             "Give at least one event.",
		`{"events":[],"events":[]}`: "This field is given twice.",
		`{"events":[` + many + `]}`: "Give 1000 events at most.",
	} {
		if got := c.do("POST", "/v1/events/batch", body).problem(422, "invalid")["events"]; got != want {
			t.Errorf("%.40s: %q, want %q", body, got, want)
		}
	}
	c.do("POST", "/v1/events/batch", `[`+anEvent+`]`).problem(400, "malformed_json")
	c.do("POST", "/v1/events/batch", `{"event":[`+anEvent+`]}`).problem(422, "invalid")
	c.do("POST", "/v1/events/batch", `{"events":[`+anEvent+`,`).problem(400, "malformed_json")
	c.do("POST", "/v1/events/batch", strings.Repeat(" ", 8<<20+1)).problem(413, "body_too_large")
	if a := c.do("POST", "/v1/events/batch", `{"events":[`+strings.TrimSuffix(many, ","+anEvent)+`]}`).is(202); a.number("accepted") != 1000 {
		t.Errorf("%d of 1000 accepted", a.number("accepted"))
	}
}

func TestListEvents_PagesAndFilters(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	p.api(p.theirs).do("POST", "/v1/events", anEvent).is(202)
	var want []string
	for i := range 5 {
		id := fmt.Sprint("e", i)
		c.do("POST", "/v1/events", map[string]any{"type": []string{"a", "b"}[i%2], "data": i, "id": id, "subscriber": fmt.Sprint("s", i)}).is(202)
		want = append([]string{id}, want...)
	}
	ids := func(a answered) (ids []string) {
		for _, e := range a.is(200).list("data") {
			ids = append(ids, e.(map[string]any)["id"].(string))
		}
		return ids
	}
	first := c.do("GET", "/v1/events?limit=2", nil)
	second := c.do("GET", "/v1/events?limit=2&cursor="+first.text("nextCursor"), nil)
	third := c.do("GET", "/v1/events?limit=2&cursor="+second.text("nextCursor"), nil)
	back := c.do("GET", "/v1/events?limit=2&cursor="+third.text("prevCursor"), nil)
	if diff := cmp.Diff([][]string{want[:2], want[2:4], want[4:], want[2:4]}, [][]string{ids(first), ids(second), ids(third), ids(back)}); diff != "" {
		t.Error(diff)
	}
	if first.at("prevCursor") != nil || third.at("nextCursor") != nil {
		t.Errorf("the ends lead further: %v, %v", first.at("prevCursor"), third.at("nextCursor"))
	}
	if diff := cmp.Diff([]string{"e3", "e1"}, ids(c.do("GET", "/v1/events?type=b", nil))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"e2"}, ids(c.do("GET", "/v1/events?subscriber=s2", nil))); diff != "" {
		t.Error(diff)
	}
	if got := c.do("GET", "/v1/events?since=2100-01-01T00:00:00Z", nil).is(200); len(got.list("data")) != 0 || got.at("nextCursor") != nil {
		t.Errorf("%s", got.raw)
	}
	if got := ids(c.do("GET", "/v1/events?until=2100-01-01T00:00:00Z&since=2020-01-01T00:00:00%2B01:00", nil)); len(got) != 5 {
		t.Error(got)
	}
	if _, listed := first.list("data")[0].(map[string]any)["data"]; listed {
		t.Error("a list has payloads in it")
	}
}

func TestLists_RefuseWrongParametersWithASentence(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	const limit, instant = "Give a whole number from 1 to 200.", "Give a time in RFC 3339, such as 2026-03-01T12:00:00Z."
	for query, want := range map[string]map[string]string{
		"/v1/events?limit=0":                    {"limit": limit},
		"/v1/events?limit=201":                  {"limit": limit},
		"/v1/events?limit=ten":                  {"limit": limit},
		"/v1/events?limit=99999999999999999999": {"limit": limit},
		"/v1/events?since=yesterday&until=1":    {"since": instant, "until": instant},
		"/v1/events?type=a%00b&subscriber=%ff":  {"type": "Give UTF-8 text without NUL characters.", "subscriber": "Give UTF-8 text without NUL characters."},
		"/v1/events?cursor=x":                   {"cursor": "This is not a cursor of this list. Start again from its first page."},
		"/v1/deliveries?status=done":            {"status": "Choose one of pending, processing, retrying, delivered, exhausted or cancelled."},
		"/v1/deliveries?endpointid=x":           {"endpointid": `There is no "endpointid" here. Did you mean endpointId?`},
		"/v1/endpoints?state=broken":            {"state": "Choose one of healthy, failing, paused or disabled."},
		"/v1/policies?kind=x":                   {"kind": "This call takes no parameters."},
		"/v1/deliveries/1/attempts?cursor=e30":  nil,
	} {
		if want == nil {
			c.do("GET", query, nil).problem(404, "not_found")
			continue
		}
		if diff := cmp.Diff(want, c.do("GET", query, nil).problem(http.StatusUnprocessableEntity, "invalid")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListPolicies_ShowsWhatDecides(t *testing.T) {
	t.Parallel()
	p := setup(t)
	list := p.api(p.ours).do("GET", "/v1/policies", nil).is(200)
	found := map[string]map[string]any{}
	for _, v := range list.list("data") {
		policy := v.(map[string]any)
		found[fmt.Sprint(policy["kind"], "/", policy["profile"])] = policy
	}
	compact := found["webhook.deliver/compact"]
	hash, _ := compact["hash"].(string)
	want := map[string]any{"kind": "webhook.deliver", "profile": "compact", "version": json.Number("1"), "hash": hash, "attempts": json.Number("9"),
		"waitsMs": numbers(30_000, 120_000, 600_000, 1_800_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000), "jitter": "20%",
		"timeoutMs": json.Number("10000"), "horizonMs": json.Number("259200000"), "retryAfterCapMs": json.Number("36000000"),
		"disableEndpoint": map[string]any{"failingForMs": nil, "failuresInARow": json.Number("20")},
		"classes":         map[string]any{"http.429": "snooze", "http.503": "snooze", "endpoint_disabled": "cancel", "blocked": "discard", "configuration": "discard"}}
	if diff := cmp.Diff(want, compact); diff != "" || len(hash) != 64 {
		t.Error(diff)
	}
	if standard := found["webhook.deliver/standard"]; standard["attempts"] != json.Number("18") || len(standard["waitsMs"].([]any)) != 17 {
		t.Errorf("%v", standard)
	}
	if list.at("nextCursor") != nil || list.at("prevCursor") != nil {
		t.Errorf("%s", list.raw)
	}
}

func numbers(all ...int) []any {
	out := make([]any, len(all))
	for i, n := range all {
		out[i] = json.Number(fmt.Sprint(n))
	}
	return out
}

func TestSimulate_DecidesAsARealTaskWould(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	body := `{"kind":"webhook.deliver","taskId":1042,"startAt":"2026-03-01T12:00:00Z","answers":[{"class":"http.500","tookMs":100},
		{"class":"http.503","retryAfter":"120"},{"class":"http.429","retryAfter":"999999"},{"class":"http.503","retryAfter":"soon"},{"class":"http.410"},{"class":"success","manual":true}]}`
	a := c.do("POST", "/v1/policies/simulate", body).is(200)
	steps := a.list("steps")
	var got []string
	for _, v := range steps {
		s := v.(map[string]any)
		read := "-"
		if ra, ok := s["retryAfter"].(map[string]any); ok {
			read = ra["read"].(string)
		}
		got = append(got, fmt.Sprint(s["attempt"], " ", s["class"], " ", s["decision"], " ", s["reason"], " ", read, " ", s["charged"], " ", s["cap"]))
	}
	want := []string{
		"1 http.500 retry_scheduled failed - true <nil>",
		"2 http.503 snoozed retry_after used false <nil>",
		"2 http.429 snoozed retry_after capped false retry_after",
		"2 http.503 retry_scheduled failed ignored true <nil>",
		"3 http.410 permanent_failure gone - true <nil>",
		"4 success accepted accepted - true <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	first := steps[0].(map[string]any)
	wait, err := first["waitMs"].(json.Number).Int64()
	if err != nil || wait < 4_500 || wait > 5_500 || first["baseWaitMs"] != json.Number("5000") || first["finishedAt"] != "2026-03-01T12:00:00.1Z" {
		t.Errorf("%v", first)
	}
	if last := steps[5].(map[string]any); last["waitMs"] != nil || last["nextAttemptAt"] != nil {
		t.Errorf("%v", last)
	}
	again := c.do("POST", "/v1/policies/simulate", body).is(200)
	if diff := cmp.Diff(string(a.raw), string(again.raw)); diff != "" {
		t.Errorf("the same history is decided otherwise: %s", diff)
	}
}

func TestSimulate_RefusesWhatItCannotPlay(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	answers := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"class":"timeout"},`, n), ",") }
	for body, field := range map[string]string{
		`{"kind":"nothing","answers":[{"class":"x"}]}`:                                          "kind",
		`{"kind":"webhook.deliver","profile":"fast","answers":[{"class":"x"}]}`:                 "kind",
		`{"kind":"webhook.deliver","answers":[]}`:                                               "answers",
		`{"kind":"webhook.deliver"}`:                                                            "answers",
		`{"kind":"webhook.deliver","answers":[` + answers(501) + `]}`:                           "answers",
		`{"kind":"webhook.deliver","answers":[{"class":"x"},{}]}`:                               "answers[1].class",
		`{"kind":"webhook.deliver","answers":[{"class":"x","tookMs":3600001}]}`:                 "answers[0].tookMs",
		`{"kind":"webhook.deliver","answers":[{"class":"x","took":1}]}`:                         "answers[0].took",
		`{"kind":"webhook.deliver","answers":[{"class":"x"}],"startAt":"9999-01-01T00:00:00Z"}`: "startAt",
		`{"kind":"webhook.deliver","answers":[{"class":"x"}],"taskId":0}`:                       "taskId",
	} {
		if fields := c.do("POST", "/v1/policies/simulate", body).problem(422, "invalid"); fields[field] == "" {
			t.Errorf("%.80s: %v", body, fields)
		}
	}
	// A policy gives up long before the bound.
	a := c.do("POST", "/v1/policies/simulate", `{"kind":"webhook.deliver","answers":[`+answers(500)+`]}`).is(200)
	if n := len(a.list("steps")); n != 18 {
		t.Errorf("%d steps, want 18", n)
	}
}

package main

import (
	"strings"
	"testing"
)

func TestForecast_PrintsRetriesWorkersAndDrain(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	env := environment{args: []string{"policies", "forecast", "--rate", "10/s"}, getenv: func(string) string { return "" }, out: &out, err: &out}
	if err := run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"order.notification, profile standard: 10 tasks a second", "Peak            3600 attempts a minute", "Workers needed  1800", "Drained         40s after the outage"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the forecast lacks %q:\n%s", want, out.String())
		}
	}
}

func TestForecast_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--rate fast": "no rate", "--outage forever": "must be a duration", "--profile none": "no policy", "--workers -1": "negative"} {
		env := environment{args: append([]string{"policies", "forecast"}, strings.Fields(args)...), getenv: func(string) string { return "" }, out: new(strings.Builder), err: new(strings.Builder)}
		if err := run(t.Context(), env); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is answered %v, want that it says %q", args, err, want)
		}
	}
}

package ours_test

import (
	"testing"

	"entrega/internal/verify/ours"
)

func TestBelow_TakesOnlyThisModule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path string
		rel  string
		ok   bool
	}{
		{"entrega", ".", true},
		{"entrega/internal/store", "internal/store", true},
		{"entregas/web", "", false},
		{"github.com/labstack/echo/v4", "", false},
		{"context", "", false},
	}
	for _, test := range tests {
		rel, ok := ours.Below(test.path)
		if ok != test.ok || (ok && rel != test.rel) {
			t.Errorf("Below(%q) = %q, %t; want %q, %t", test.path, rel, ok, test.rel, test.ok)
		}
	}
}

func TestUnder_EndsAtAWholeFolder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rel, root string
		want      bool
	}{
		{"web", "web", true},
		{"web/session", "web", true},
		{"webhooks", "web", false},
		{"internal/web", "web", false},
	}
	for _, test := range tests {
		if got := ours.Under(test.rel, test.root); got != test.want {
			t.Errorf("Under(%q, %q) = %t, want %t", test.rel, test.root, got, test.want)
		}
	}
}

func TestIsTestSupport_GoesByTheName(t *testing.T) {
	t.Parallel()
	for rel, want := range map[string]bool{
		"internal/store/storetest":        true,
		"internal/store/storetest/keeper": true,
		"jobs/jobstest":                   true,
		"jobs":                            false,
		"internal/test":                   false,
		"internal/store/testing":          false,
	} {
		if got := ours.IsTestSupport(rel); got != want {
			t.Errorf("IsTestSupport(%q) = %t, want %t", rel, got, want)
		}
	}
}

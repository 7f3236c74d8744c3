package webhooks

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// apply returns the settings with what the change holds.
func (c Change) apply(s Settings) Settings {
	set(&s.URL, c.URL)
	set(&s.Description, c.Description)
	set(&s.Subscriber, c.Subscriber)
	set(&s.EventTypes, c.EventTypes)
	set(&s.Profile, c.Profile)
	set(&s.Headers, c.Headers)
	set(&s.MaxInFlight, c.MaxInFlight)
	set(&s.RatePerSecond, c.RatePerSecond)
	set(&s.TimeoutSeconds, c.TimeoutSeconds)
	return s
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// args are the columns of the settings.
func (s Settings) args(sealedHeaders []byte) pgx.StrictNamedArgs {
	types := s.EventTypes
	if types == nil {
		types = []string{}
	}
	return pgx.StrictNamedArgs{"url": s.URL, "description": s.Description, "subscriber": s.Subscriber, "event_types": types,
		"profile": s.Profile, "headers": sealedHeaders, "max_in_flight": s.MaxInFlight, "rate_per_second": s.RatePerSecond,
		"timeout_seconds": s.TimeoutSeconds}
}

// fromTo is one changed setting in the audit log.
type fromTo struct {
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// auditChanges lists what differs, by the names of the API. Values that may let somebody in stay out: of headers only the
// names are kept, of a URL not the query.
func auditChanges(old, now Settings) map[string]any {
	changes := map[string]any{}
	note := func(field string, differs bool, from, to any) {
		if differs {
			changes[field] = fromTo{From: from, To: to}
		}
	}
	note("url", old.URL != now.URL, withoutQuery(old.URL), withoutQuery(now.URL))
	note("description", old.Description != now.Description, old.Description, now.Description)
	note("subscriber", old.Subscriber != now.Subscriber, old.Subscriber, now.Subscriber)
	note("eventTypes", !slices.Equal(old.EventTypes, now.EventTypes), old.EventTypes, now.EventTypes)
	note("profile", old.Profile != now.Profile, old.Profile, now.Profile)
	note("headers", !maps.Equal(old.Headers, now.Headers), slices.Sorted(maps.Keys(old.Headers)), slices.Sorted(maps.Keys(now.Headers)))
	note("maxInFlight", old.MaxInFlight != now.MaxInFlight, zeroAsNil(old.MaxInFlight), now.MaxInFlight)
	note("ratePerSecond", old.RatePerSecond != now.RatePerSecond, zeroAsNil(old.RatePerSecond), zeroAsNil(now.RatePerSecond))
	note("timeoutSeconds", old.TimeoutSeconds != now.TimeoutSeconds, zeroAsNil(old.TimeoutSeconds), zeroAsNil(now.TimeoutSeconds))
	return changes
}

func zeroAsNil(v any) any {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return v
}

func withoutQuery(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}

// joinInvalid makes one *store.InvalidError of several, so that a form shows all at once. Any other error wins.
func joinInvalid(errs ...error) error {
	var all store.InvalidError
	for _, err := range errs {
		var bad *store.InvalidError
		switch {
		case err == nil:
		case errors.As(err, &bad):
			all.Fields = append(all.Fields, bad.Fields...)
		default:
			return err
		}
	}
	return all.OrNil()
}

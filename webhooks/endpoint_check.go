package webhooks

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/store"
)

// The bounds of an endpoint's settings.
const (
	maxURLLength         = 2048
	maxDescriptionLength = 500
	maxSubscriberLength  = 128
	maxEventTypes        = 100
	maxMaxInFlight       = 64
	maxRatePerSecond     = 10_000
	minRatePerSecond     = 0.01
	maxTimeoutSeconds    = 30
)

// Settings are what people choose about an endpoint. The zero value of a field is its default.
type Settings struct {
	URL         string
	Description string
	// Subscriber is the project's own customer; empty takes the events of all.
	Subscriber string
	// EventTypes none takes all.
	EventTypes []string
	// Profile empty is the project's.
	Profile string
	Headers map[string]string
	// MaxInFlight 0 is 1.
	MaxInFlight int
	// RatePerSecond 0 is no bound.
	RatePerSecond float64
	// TimeoutSeconds 0 is the policy's.
	TimeoutSeconds int
}

// settings are those of an existing endpoint.
func (e Endpoint) settings() Settings {
	return Settings{URL: e.URL, Description: e.Description, Subscriber: e.Subscriber, EventTypes: e.EventTypes, Profile: e.Profile,
		Headers: e.Headers, MaxInFlight: e.MaxInFlight, RatePerSecond: e.RatePerSecond, TimeoutSeconds: e.TimeoutSeconds}
}

// clean returns the settings in the form to store, or an *store.InvalidError with a sentence for each field that is wrong.
// What the installation decides, and not the form of a value, is judged only where it differs from was: a URL or profile that
// was good when it was saved does not stand in the way of changing something else.
func (s *Endpoints) clean(project string, in, was Settings) (Settings, error) {
	var bad store.InvalidError
	out := in
	out.URL = strings.TrimSpace(in.URL)
	if out.URL != was.URL || out.URL == "" {
		s.checkURL(out.URL, &bad)
	}
	out.Description = strings.TrimSpace(in.Description)
	if utf8.RuneCountInString(out.Description) > maxDescriptionLength || !isLine(out.Description) {
		bad.Add("description", fmt.Sprintf("Use one line of up to %d characters.", maxDescriptionLength))
	}
	if utf8.RuneCountInString(in.Subscriber) > maxSubscriberLength || !isLine(in.Subscriber) {
		bad.Add("subscriber", "Use 1 to 128 characters without control characters, or leave it out.")
	}
	out.EventTypes = cleanEventTypes(in.EventTypes, &bad)
	if in.Profile != "" && in.Profile != was.Profile {
		if profiles := s.client.Policies().Profiles(Deliver.Name, project); !slices.Contains(profiles, in.Profile) {
			bad.Add("profile", "There is no such profile. Choose one of: "+strings.Join(profiles, ", ")+".")
		}
	}
	out.Headers = checkHeaders(in.Headers, &bad)
	if out.MaxInFlight == 0 {
		out.MaxInFlight = 1
	}
	if out.MaxInFlight < 1 || out.MaxInFlight > maxMaxInFlight {
		bad.Add("maxInFlight", fmt.Sprintf("Give a number from 1 to %d.", maxMaxInFlight))
	}
	if r := in.RatePerSecond; r != 0 && (math.IsNaN(r) || r < minRatePerSecond || r > maxRatePerSecond) {
		bad.Add("ratePerSecond", fmt.Sprintf("Give a number from %v to %d, or leave it out for no bound.", minRatePerSecond, maxRatePerSecond))
	}
	if in.TimeoutSeconds < 0 || in.TimeoutSeconds > maxTimeoutSeconds {
		bad.Add("timeoutSeconds", fmt.Sprintf("Give a number from 1 to %d, or leave it out for the policy's timeout.", maxTimeoutSeconds))
	}
	return out, bad.OrNil()
}

// checkURL asks the door. The URL is stored as people wrote it, so that they find it again; the door maps it anew on each use.
func (s *Endpoints) checkURL(url string, bad *store.InvalidError) {
	if len(url) > maxURLLength {
		bad.Add("url", fmt.Sprintf("The URL has %d bytes; %d are the most.", len(url), maxURLLength))
		return
	}
	_, err := s.door.CheckURL(url)
	var blocked *egress.BlockedError
	switch {
	case err == nil:
	case errors.As(err, &blocked):
		bad.Add("url", blocked.Sentence)
	default:
		bad.Add("url", "The URL cannot be used.")
	}
}

func cleanEventTypes(given []string, bad *store.InvalidError) []string {
	if len(given) > maxEventTypes {
		bad.Add("eventTypes", fmt.Sprintf("There are %d event types; %d are the most. Leave the list empty to take all.", len(given), maxEventTypes))
		return nil
	}
	types := make([]string, 0, len(given))
	for i, name := range given {
		name = strings.TrimSpace(name)
		switch {
		case !events.IsType(name):
			bad.Add(fmt.Sprintf("eventTypes[%d]", i), events.TypeRule)
		case !slices.Contains(types, name):
			types = append(types, name)
		}
	}
	return types
}

// isLine reports that s is UTF-8 text without control characters.
func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

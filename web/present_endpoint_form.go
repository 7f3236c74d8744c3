package web

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"entrega/internal/store"
	"entrega/views"
	"entrega/webhooks"
)

// filledForm shows the settings of an endpoint. Header values that look like credentials are hidden.
func filledForm(e webhooks.Endpoint) views.EndpointFormProps {
	p := views.EndpointFormProps{ID: e.ID, Name: endpointName(e), URL: e.URL, Description: e.Description, Subscriber: e.Subscriber,
		Profile: e.Profile, MaxInFlight: strconv.Itoa(e.MaxInFlight)}
	if e.RatePerSecond > 0 {
		p.RatePerSecond = strconv.FormatFloat(e.RatePerSecond, 'f', -1, 64)
	}
	if e.TimeoutSeconds > 0 {
		p.TimeoutSecs = strconv.Itoa(e.TimeoutSeconds)
	}
	shown := webhooks.MaskHeaders(e.Headers)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		p.Headers += name + ": " + shown[name] + "\n"
	}
	return p
}

// refusedForm shows a form as it was sent, with what is wrong beside each field.
func refusedForm(id, name string, form url.Values, invalid *store.InvalidError) views.EndpointFormProps {
	return views.EndpointFormProps{
		ID: id, Name: name, URL: form.Get("url"), Description: form.Get("description"), Subscriber: form.Get("subscriber"),
		Profile: form.Get("profile"), MaxInFlight: form.Get("maxInFlight"), RatePerSecond: form.Get("ratePerSecond"),
		TimeoutSecs: form.Get("timeoutSeconds"), Headers: form.Get("headers"), Problems: fieldProblems(invalid),
	}
}

// fieldProblems gathers the sentences by the field of the form: those about one header or one event type belong to the whole.
func fieldProblems(invalid *store.InvalidError) map[string]string {
	problems := map[string]string{}
	for _, f := range invalid.Fields {
		field, sentence := f.Field, f.Sentence
		if name, ok := strings.CutPrefix(field, "headers."); ok {
			field, sentence = "headers", name+": "+sentence
		}
		field, _, _ = strings.Cut(field, "[")
		if problems[field] == "" {
			problems[field] = sentence
		}
	}
	return problems
}

// presentChoices ticks known types, and writes the others that are chosen into the text field.
func presentChoices(p *views.EndpointFormProps, known, chosen []string) {
	for _, name := range known {
		p.KnownTypes = append(p.KnownTypes, views.EventTypeChoice{Name: name, Chosen: slices.Contains(chosen, name)})
	}
	var others []string
	for _, name := range chosen {
		if !slices.Contains(known, name) {
			others = append(others, name)
		}
	}
	p.EventTypes = strings.Join(others, "\n")
}

// profileChoices offers the project's own profile first, as the one without a name.
func profileChoices(profiles []string, projects string) []views.Option {
	options := []views.Option{{Value: "", Label: "As the project: " + projects}}
	for _, name := range profiles {
		options = append(options, views.Option{Value: name, Label: name})
	}
	return options
}

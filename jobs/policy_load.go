package jobs

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

//go:embed policies/*.yaml
var shippedPolicies embed.FS

// PolicyError is one thing that is wrong with a policy document.
type PolicyError struct {
	File     string
	Line     int
	Sentence string
}

func (e *PolicyError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Sentence) }

// LoadPolicies reads the shipped policies and, unless its name is empty, a file of documents that override some of them.
// A document takes the place of the shipped one of the same kind and profile. A document of webhook.deliver may add a
// profile, and may name the projects it is for; it then leaves the general policy to all others.
//
// All that is wrong with the file is reported at once: the error joins a *PolicyError for each fault.
func LoadPolicies(overrideFile string) (*PolicySet, error) {
	shipped, err := loadShipped()
	if err != nil {
		return nil, err
	}
	if overrideFile == "" {
		return NewPolicySet(shipped...)
	}
	data, err := os.ReadFile(overrideFile)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	policies, err := override(shipped, overrideFile, data)
	if err != nil {
		return nil, err
	}
	return NewPolicySet(policies...)
}

func loadShipped() ([]Policy, error) {
	var policies []Policy
	files, err := fs.Glob(shippedPolicies, "policies/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list shipped policies: %w", err)
	}
	for _, file := range files {
		data, err := shippedPolicies.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read shipped policies: %w", err)
		}
		documents, err := readDocuments(file, data)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			policies = append(policies, d.Policy)
		}
	}
	return policies, nil
}

// override puts the documents of a file in the place of shipped policies, or beside them.
func override(shipped []Policy, file string, data []byte) ([]Policy, error) {
	documents, err := readDocuments(file, data)
	errs := []error{err}
	seen := map[projectKey]int{}
	policies := slices.Clone(shipped)
	for _, d := range documents {
		if fault, wrong := unfit(shipped, d.Policy); wrong {
			errs = append(errs, d.errorAt(fault))
		}
		for _, key := range d.keys() {
			if line, ok := seen[key]; ok {
				errs = append(errs, d.errorAt(fault{"", duplicateSentence(key, line)}))
			}
			seen[key] = d.line("")
		}
		if len(d.Projects) == 0 {
			policies = slices.DeleteFunc(policies, func(p Policy) bool {
				return p.Kind == d.Kind && p.Profile == d.Profile && len(p.Projects) == 0
			})
		}
		policies = append(policies, d.Policy)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return policies, nil
}

// unfit tells why a document overrides nothing that exists: a policy that no task ever asks for is a mistake, most
// likely in its spelling.
func unfit(shipped []Policy, p Policy) (fault, bool) {
	kinds, profiles := map[string]bool{}, map[string]bool{}
	for _, s := range shipped {
		kinds[s.Kind] = true
		if s.Kind == p.Kind {
			profiles[s.Profile] = true
		}
	}
	switch {
	case !kinds[p.Kind]:
		return fault{"kind", fmt.Sprintf("no task is of kind %q; the kinds are %s.", p.Kind, joinSorted(kinds))}, true
	case p.Kind != kindDeliver && !profiles[p.Profile]:
		return fault{"profile", fmt.Sprintf("kind %s has no profile %q, only %s; new ones are for %s alone.",
			p.Kind, p.Profile, joinSorted(profiles), kindDeliver)}, true
	default:
		return fault{}, false
	}
}

// keys are what a document is the policy of; the project is empty for the general one.
func (d document) keys() []projectKey {
	key := policyKey{d.Kind, d.Profile}
	if len(d.Projects) == 0 {
		return []projectKey{{policyKey: key}}
	}
	var keys []projectKey
	for _, project := range d.Projects {
		keys = append(keys, projectKey{key, project})
	}
	return keys
}

func duplicateSentence(key projectKey, line int) string {
	of := ""
	if key.project != "" {
		of = " of " + key.project
	}
	return fmt.Sprintf("kind %s, profile %s%s already has a document at line %d.", key.kind, key.profile, of, line)
}

func joinSorted[V any](names map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

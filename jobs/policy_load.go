package jobs

import "errors"

// LoadPolicies reads the shipped policies and, unless it is empty, a file that overrides some of them.
func LoadPolicies(overrideFile string) (*PolicySet, error) {
	return nil, errors.New("policies cannot be read yet")
}

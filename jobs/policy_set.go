package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// PolicySet is the effective policies of an installation. After LoadPolicies, and StoreVersions at boot, it never changes
// and is safe for concurrent use.
type PolicySet struct {
	policies []*Policy
	general  map[policyKey]*Policy
	own      map[projectKey]*Policy
}

type policyKey struct{ kind, profile string }

type projectKey struct {
	policyKey
	project string
}

// NewPolicySet makes a set of policies. It fills in their defaults, refuses those that are not valid, and refuses two that
// are for the same kind, profile and project.
func NewPolicySet(policies ...Policy) (*PolicySet, error) {
	s := &PolicySet{general: map[policyKey]*Policy{}, own: map[projectKey]*Policy{}}
	for _, p := range policies {
		if err := s.add(p); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.policies, func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Profile, b.Profile), slices.Compare(a.Projects, b.Projects))
	})
	return s, nil
}

func (s *PolicySet) add(p Policy) error {
	p = p.withDefaults()
	if err := p.Validate(); err != nil {
		return err
	}
	p = p.sealed()
	key := policyKey{p.Kind, p.Profile}
	s.policies = append(s.policies, &p)
	if len(p.Projects) == 0 {
		if s.general[key] != nil {
			return fmt.Errorf("kind %s has two policies for profile %s", p.Kind, p.Profile)
		}
		s.general[key] = &p
	}
	for _, project := range p.Projects {
		key := projectKey{key, project}
		if s.own[key] != nil {
			return fmt.Errorf("kind %s has two policies for profile %s of %s", p.Kind, p.Profile, project)
		}
		s.own[key] = &p
	}
	return nil
}

// For is the policy of a kind and profile for projects that have none of their own. An empty profile means standard.
func (s *PolicySet) For(kind, profile string) (Policy, bool) { return s.ForProject(kind, profile, "") }

// ForProject is the policy of a kind and profile for one project: its own where there is one, else the general one.
func (s *PolicySet) ForProject(kind, profile, project string) (Policy, bool) {
	key := policyKey{kind, cmp.Or(profile, DefaultProfile)}
	if p := s.own[projectKey{key, project}]; p != nil {
		return *p, true
	}
	if p := s.general[key]; p != nil {
		return *p, true
	}
	return Policy{}, false
}

// Profiles are the names of the profiles of a kind that a project may choose from, sorted.
func (s *PolicySet) Profiles(kind, project string) []string {
	names := map[string]bool{}
	for _, p := range s.policies {
		if p.Kind == kind && (len(p.Projects) == 0 || slices.Contains(p.Projects, project)) {
			names[p.Profile] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// All are the policies by kind, then profile; the general one before those of single projects.
func (s *PolicySet) All() []Policy {
	all := make([]Policy, len(s.policies))
	for i, p := range s.policies {
		all[i] = *p
	}
	return all
}

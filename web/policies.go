package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

// showPolicies lists every kind and profile that decides in the project.
func (s *Server) showPolicies(c echo.Context) error {
	v := visitOf(c)
	l, err := s.layout(c, "Policies", views.SectionPolicies)
	if err != nil {
		return err
	}
	policies := s.policiesOf(v.project.ID)
	p := presentPolicies(l, v, policies, s.shipped, s.profiles(v.project.ID))
	p.Forecast = presentForecast(policies, policyValue(jobs.Policy{Kind: webhooks.Deliver.Name, Profile: v.project.Profile}), c.QueryParams(), s.now())
	return s.page(c, http.StatusOK, views.Policies(p))
}

// policiesOf are the policies that decide in a project, each kind and profile once.
func (s *Server) policiesOf(project string) []jobs.Policy {
	var all []jobs.Policy
	for _, p := range s.client.Policies().All() {
		if own, ok := s.client.Policies().ForProject(p.Kind, p.Profile, project); ok && own.Hash == p.Hash {
			all = append(all, p)
		}
	}
	return all
}

// showPolicy shows one policy with its history, and what a version changed.
func (s *Server) showPolicy(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	profile := c.Param("profile")
	if profile == "default" {
		profile = jobs.DefaultProfile
	}
	p, ok := s.client.Policies().ForProject(c.Param("kind"), profile, v.project.ID)
	if !ok {
		return store.ErrNotFound
	}
	versions, err := jobs.ListPolicyVersions(ctx, s.pool, p.Kind, p.Profile)
	if err != nil {
		return err
	}
	l, err := s.layout(c, p.Kind, views.SectionPolicies)
	if err != nil {
		return err
	}
	chosen, _ := strconv.Atoi(c.QueryParam("version")) // What is no number chooses none.
	return s.page(c, http.StatusOK, views.Policy(presentPolicy(l, p, s.shipped, versions, chosen)))
}

// showSimulation plays made-up outcomes through a policy. Nothing is stored or sent, so it is a GET whose address can be shared.
func (s *Server) showSimulation(c echo.Context) error {
	v := visitOf(c)
	l, err := s.layout(c, "Simulate a policy", views.SectionPolicies)
	if err != nil {
		return err
	}
	policies := s.policiesOf(v.project.ID)
	props := views.SimulateProps{Layout: l, Policy: c.QueryParam("policy"), Policies: policyOptions(policies), Outcomes: c.QueryParam("outcomes")}
	if props.Policy == "" {
		props.Policy = policyValue(jobs.Policy{Kind: webhooks.Deliver.Name, Profile: v.project.Profile})
	}
	answers, problem := readOutcomes(props.Outcomes)
	if problem != "" || len(answers) == 0 {
		props.Problem = problem
		return s.page(c, http.StatusOK, views.Simulate(props))
	}
	for _, p := range policies {
		if policyValue(p) == props.Policy {
			presentSimulation(&props, p, answers, s.now())
			return s.page(c, http.StatusOK, views.Simulate(props))
		}
	}
	return store.ErrNotFound
}

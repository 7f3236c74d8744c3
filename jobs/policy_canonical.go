package jobs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Canonical is the policy as canonical JSON (RFC 8785: members sorted, no blanks, shortest numbers), which its hash is
// taken over. Durations are integers of milliseconds; what a policy does not have is left out. Version and hash are no
// part of it.
func (p Policy) Canonical() []byte {
	doc := map[string]any{
		"attempts":    p.Attempts,
		"jitter":      p.Jitter.Fraction,
		"kind":        p.Kind,
		"profile":     p.Profile,
		"retry_after": map[string]int64{"cap_ms": p.RetryAfterCap.Milliseconds()},
	}
	if p.Jitter.Full {
		doc["jitter"] = "full"
	}
	if len(p.Projects) > 0 {
		doc["projects"] = p.Projects
	}
	if len(p.Waits) > 0 {
		ms := make([]int64, len(p.Waits))
		for i, wait := range p.Waits {
			ms[i] = wait.Milliseconds()
		}
		doc["waits_ms"] = ms
	}
	if b := p.Backoff; b != nil {
		doc["backoff"] = backoffJSON{b.Base.Milliseconds(), b.Cap.Milliseconds(), b.Factor}
	}
	doc["timeout"] = timeoutJSON{p.Timeout.Connect.Milliseconds(), p.Timeout.Total.Milliseconds()}
	if p.Horizon > 0 {
		doc["horizon_ms"] = p.Horizon.Milliseconds()
	}
	if p.Disable != (DisableRule{}) {
		doc["disable_endpoint"] = disableJSON{p.Disable.FailingFor.Milliseconds(), p.Disable.FailuresInARow}
	}
	if len(p.Classes) > 0 {
		doc["classes"] = p.Classes
	}

	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(doc); err != nil {
		// Only a factor or fraction that is no finite number gets here, and validation refuses those.
		panic(fmt.Sprintf("jobs: encode policy %s/%s: %v", p.Kind, p.Profile, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// The members of these are declared in sorted order, as RFC 8785 wants them.
type backoffJSON struct {
	BaseMS int64   `json:"base_ms"`
	CapMS  int64   `json:"cap_ms,omitempty"`
	Factor float64 `json:"factor"`
}

type timeoutJSON struct {
	ConnectMS int64 `json:"connect_ms,omitempty"`
	TotalMS   int64 `json:"total_ms"`
}

type disableJSON struct {
	FailingForMS   int64 `json:"failing_for_ms,omitempty"`
	FailuresInARow int   `json:"failures_in_a_row,omitempty"`
}

// canonicalJSON reads back what Canonical wrote.
type canonicalJSON struct {
	Attempts int               `json:"attempts"`
	Backoff  *backoffJSON      `json:"backoff"`
	Classes  map[string]Action `json:"classes"`
	Disable  disableJSON       `json:"disable_endpoint"`
	Horizon  int64             `json:"horizon_ms"`
	Jitter   json.RawMessage   `json:"jitter"`
	Kind     string            `json:"kind"`
	Profile  string            `json:"profile"`
	Projects []string          `json:"projects"`
	Retry    struct {
		CapMS int64 `json:"cap_ms"`
	} `json:"retry_after"`
	Timeout timeoutJSON `json:"timeout"`
	Waits   []int64     `json:"waits_ms"`
}

// ParseCanonical reads a stored policy back, so that old decisions can be recomputed. It is an error when the document
// does not come out again byte for byte, since then its hash would not be the one that was recorded.
func ParseCanonical(document []byte) (Policy, error) {
	var doc canonicalJSON
	if err := json.Unmarshal(document, &doc); err != nil {
		return Policy{}, fmt.Errorf("decode policy: %w", err)
	}
	p := Policy{Kind: doc.Kind, Profile: doc.Profile, Projects: doc.Projects, Attempts: doc.Attempts,
		Timeout: Timeout{Total: fromMS(doc.Timeout.TotalMS), Connect: fromMS(doc.Timeout.ConnectMS)}, Horizon: fromMS(doc.Horizon),
		RetryAfterCap: fromMS(doc.Retry.CapMS),
		Disable:       DisableRule{FailingFor: fromMS(doc.Disable.FailingForMS), FailuresInARow: doc.Disable.FailuresInARow},
		Classes:       doc.Classes}
	for _, wait := range doc.Waits {
		p.Waits = append(p.Waits, fromMS(wait))
	}
	if b := doc.Backoff; b != nil {
		p.Backoff = &Backoff{Base: fromMS(b.BaseMS), Cap: fromMS(b.CapMS), Factor: b.Factor}
	}
	if string(doc.Jitter) == `"full"` {
		p.Jitter.Full = true
	} else if err := json.Unmarshal(doc.Jitter, &p.Jitter.Fraction); err != nil {
		return Policy{}, fmt.Errorf("decode jitter: %w", err)
	}
	if !bytes.Equal(p.Canonical(), document) {
		return Policy{}, fmt.Errorf("policy %s/%s is not in its canonical form", p.Kind, p.Profile)
	}
	p.Hash = sha256.Sum256(document)
	return p, nil
}

func fromMS(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// withDefaults fills in what a document may leave out. The defaults become part of the policy, so that a stored version
// says all there is to know.
func (p Policy) withDefaults() Policy {
	p.Profile = cmp.Or(p.Profile, DefaultProfile)
	p.RetryAfterCap = cmp.Or(p.RetryAfterCap, DefaultRetryAfterCap)
	p.Timeout.Total = cmp.Or(p.Timeout.Total, DefaultTimeout)
	classes := map[string]Action{"blocked": ActionDiscard, "configuration": ActionDiscard, "endpoint_disabled": ActionDiscard}
	// Any receiver may ask to be left alone for a while, so a Retry-After counts unless the document says otherwise.
	for _, class := range []string{"http.429", "http.503"} {
		if family, _ := httpFamily(class); p.Classes[family] == "" {
			classes[class] = ActionSnooze
		}
	}
	maps.Copy(classes, p.Classes)
	p.Classes = classes
	return p
}

// sealed takes the hash, which is over everything but the version. The policy must be valid.
func (p Policy) sealed() Policy {
	p.Projects = slices.Sorted(slices.Values(p.Projects))
	p.Hash = sha256.Sum256(p.Canonical())
	return p
}

package jobs

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubjectOf_ReadsWhatDecodingReads(t *testing.T) {
	t.Parallel()
	full := metadata{ProjectID: "project_1", EndpointID: "endpoint_1", EventID: `a "quoted" é\n`, IdempotencyKey: "key", OrderID: "o-1",
		RecipientRef: []byte{0, 1, 0xff}, Trigger: TriggerManual, Label: map[string]string{"project_id": "not this one"}, Reason: "failed",
		Last: &LastResult{Status: 500, Decision: VerdictRetryScheduled}}
	for name, m := range map[string]metadata{"everything": full, "nothing": {}, "a task of the system": {Trigger: TriggerSchedule}} {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		want := parseMetadata(raw)
		want.Label, want.Reason, want.Last = nil, "", nil // for lists
		if diff := cmp.Diff(want, subjectOf(raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := subjectOf([]byte(`{"project_id": 7, "trigger": "test", "recipient_ref": "not base64!"}`)); got.ProjectID != "" || got.Trigger != TriggerTest || got.RecipientRef != nil {
		t.Errorf("changed by hand: %+v", got)
	}
}

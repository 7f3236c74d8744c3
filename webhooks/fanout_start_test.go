package webhooks

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlanFanout_DeliveriesOfFewEventsStartWhereTheLaneIsWorked(t *testing.T) {
	t.Parallel()
	here := fanoutEndpoint{ID: "here", Holder: "node_a", Here: true}
	free := fanoutEndpoint{ID: "free", Here: true}
	busy := fanoutEndpoint{ID: "busy", Here: true, Queued: startFew}
	elsewhere := fanoutEndpoint{ID: "elsewhere", Holder: "node_b"}
	started := func(events int, endpoints ...fanoutEndpoint) map[string]int {
		found := make([]fanoutEvent, events)
		for i := range found {
			found[i] = fanoutEvent{ID: fmt.Sprint(i), Type: "a"}
		}
		n := map[string]int{}
		for _, item := range planFanout("project", found, endpoints, time.Now()).deliveries {
			if item.Here {
				n[item.EndpointID]++
			}
		}
		return n
	}
	if diff := cmp.Diff(map[string]int{"here": 1, "free": 1}, started(1, here, free, busy, elsewhere)); diff != "" {
		t.Errorf("of one event (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"here": fewEvents, "free": fewEvents}, started(fewEvents, here, free)); diff != "" {
		t.Errorf("of few events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{}, started(fewEvents+1, here, free)); diff != "" {
		t.Errorf("of many events (-want +got):\n%s", diff)
	}
}

package alerts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
)

func subjects(list store.List[Alert]) []string {
	out := []string{}
	for _, a := range list.Rows {
		out = append(out, a.Subject)
	}
	return out
}

// someAlerts makes alerts of the project in every state, and one of the installation; the letter is the order in which a list
// of both has them.
func (b *bundle) someAlerts() {
	b.t.Helper()
	at := func(minutes int) time.Time { return b.now.Add(time.Duration(minutes) * time.Minute) }
	b.newAlert(b.project, "g resolved", at(9))
	acknowledged := b.newAlert(b.project, "e acknowledged", at(8))
	b.newAlert(b.project, "d open", at(1))
	b.newAlert("", "c of the installation", at(2))
	b.newAlert(b.project, "a open", at(4))
	b.newAlert(b.project, "b open", at(3))
	b.newAlert(b.newProject(), "another's", at(10))
	b.exec(`update alerts set state = 'resolved', resolved_at = now(), holds = false where subject like '%resolved'`)
	if _, err := Acknowledge(b.ctx, b.pool, b.owner, b.project, acknowledged.ID); err != nil {
		b.t.Fatal(err)
	}
}

func TestList_OpenFirstThenNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.someAlerts()
	for name, tc := range map[string]struct {
		view   View
		filter Filter
		want   []string
	}{
		"the project's":    {View{Project: b.project}, Filter{}, []string{"a open", "b open", "d open", "e acknowledged", "g resolved"}},
		"an admin's":       {View{Project: b.project, Installation: true}, Filter{}, []string{"a open", "b open", "c of the installation", "d open", "e acknowledged", "g resolved"}},
		"open":             {View{Project: b.project}, Filter{State: StateOpen}, []string{"a open", "b open", "d open"}},
		"acknowledged":     {View{Project: b.project}, Filter{State: StateAcknowledged}, []string{"e acknowledged"}},
		"resolved":         {View{Project: b.project}, Filter{State: StateResolved}, []string{"g resolved"}},
		"of a kind":        {View{Project: b.project}, Filter{Kind: Backlog}, []string{}},
		"of an endpoint":   {View{Project: b.project}, Filter{EndpointID: "endpoint_1"}, []string{}},
		"nobody's project": {View{Project: "project_none"}, Filter{}, []string{}},
	} {
		list, err := List(b.ctx, b.pool, tc.view, tc.filter, store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, subjects(list)); diff != "" {
			t.Errorf("%s differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestList_PagesBothWays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.someAlerts()
	view := View{Project: b.project, Installation: true}
	page := store.Page{Limit: 2}
	var pages [][]string
	var last store.List[Alert]
	for {
		list, err := List(b.ctx, b.pool, view, Filter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		pages, last = append(pages, subjects(list)), list
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	want := [][]string{{"a open", "b open"}, {"c of the installation", "d open"}, {"e acknowledged", "g resolved"}}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Errorf("the pages differ (-want +got):\n%s", diff)
	}
	back, err := List(b.ctx, b.pool, view, Filter{}, store.Page{Limit: 2, Cursor: last.Prev})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1], subjects(back)); diff != "" {
		t.Errorf("the page before the last differs (-want +got):\n%s", diff)
	}
}

func TestCount_ByStateAndByProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.someAlerts()
	for view, want := range map[View]Counts{
		{Project: b.project}:                     {Open: 3, Acknowledged: 1, Resolved: 1},
		{Project: b.project, Installation: true}: {Open: 4, Acknowledged: 1, Resolved: 1},
		{Project: "project_none"}:                {},
	} {
		got, err := Count(b.ctx, b.pool, view)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the counts of %+v differ (-want +got):\n%s", view, diff)
		}
	}
	open, err := CountOpenOf(b.ctx, b.pool, []string{b.project, "project_none"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{b.project: 3}, open); diff != "" {
		t.Errorf("the open ones differ (-want +got):\n%s", diff)
	}
}

func TestBadge_KeepsACountForTwoSeconds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.someAlerts()
	badge := NewBadge(b.pool, func() time.Time { return b.now })
	mine, admins := View{Project: b.project}, View{Project: b.project, Installation: true}
	want := func(v View, want int) {
		t.Helper()
		if got, err := badge.Open(b.ctx, v); err != nil || got != want {
			t.Errorf("the badge of %+v shows %d, %v; want %d", v, got, err, want)
		}
	}
	want(mine, 3)
	want(admins, 4)
	b.newAlert(b.project, "h open", b.now)
	want(mine, 3)
	b.now = b.now.Add(2 * time.Second)
	want(mine, 4)
	b.newAlert(b.project, "i open", b.now)
	want(mine, 4)
	badge.Forget()
	want(mine, 5)
	want(admins, 6)
}

package views

import (
	"testing"
	"time"

	"golang.org/x/net/html"
)

func TestTimeline_FillsThePastAndLeavesTheFutureHollow(t *testing.T) {
	t.Parallel()
	p := sampleTask(plainText)
	doc, _ := render(t, timeline(p))
	past, future := 0, 0
	for _, c := range children(doc, "circle") {
		switch class, _ := attr(c, "class"); class {
		case "dot warn":
			past++
		case "dot hollow warn", "dot hollow calm":
			future++
		default:
			t.Errorf("a dot of the class %q", class)
		}
	}
	if past != len(p.Attempts) || future != len(p.Future) {
		t.Errorf("drew %d past and %d future attempts, want %d and %d", past, future, len(p.Attempts), len(p.Future))
	}
	if rows := len(children(doc, "tr")) - 1; rows != len(p.Future) {
		t.Errorf("the hidden table has %d rows, want %d", rows, len(p.Future))
	}
}

func TestTimeline_KeepsOrderAndNeverOverlapsLabels(t *testing.T) {
	t.Parallel()
	p := sampleTask(plainText)
	p.Attempts = nil
	start := at("10:00:00.000")
	for i := range 25 {
		p.Attempts = append([]Attempt{{Number: i + 1, StartedAt: start.Add(time.Duration(i*i) * time.Second), Short: "timeout", Decision: "retry_scheduled"}}, p.Attempts...)
	}
	l := timelineOf(p)
	type reach struct{ from, to float64 }
	var taken []reach
	for i, d := range l.dots {
		if i > 0 && d.x < l.dots[i-1].x {
			t.Fatalf("attempt %d lies left of the one before", i+1)
		}
		if d.x < lineLeft || d.x > lineRight {
			t.Errorf("attempt %d lies at %v, outside of the line", i+1, d.x)
		}
		if d.label == "" {
			continue
		}
		width := float64(len(d.label)) * labelWidth
		r := reach{d.x - width/2, d.x + width/2}
		switch d.anchor {
		case "start":
			r = reach{d.x - 6, d.x - 6 + width}
		case "end":
			r = reach{d.x + 6 - width, d.x + 6}
		}
		for _, other := range taken {
			if r.from < other.to && other.from < r.to {
				t.Errorf("the label %q of attempt %d overlaps another", d.label, i+1)
			}
		}
		taken = append(taken, r)
	}
	if last := l.dots[len(p.Attempts)]; last.label == "" {
		t.Error("the next attempt has no label")
	}
}

func TestTimeline_OfATaskWithoutAttemptsStartsAtItsCreation(t *testing.T) {
	t.Parallel()
	p := sampleTask(plainText)
	p.Attempts = nil
	l := timelineOf(p)
	if len(l.dots) != len(p.Future) || l.now >= 0 {
		t.Errorf("%d dots and now at %v, want %d and none", len(l.dots), l.now, len(p.Future))
	}
}

func TestBars_ScaleEndsAtARoundCountAboveTheHighest(t *testing.T) {
	t.Parallel()
	for highest, want := range map[int]int{0: 1, 1: 1, 3: 3, 7: 8, 10: 10, 11: 12, 47: 50, 4900: 5000, 5100: 6000} {
		b := Bars{Series: []Series{{"a", Good}, {"b", Bad}}, Buckets: []Bucket{{Values: []int{highest, 0}}, {Values: []int{0, highest}}}}
		if got := b.top(); got != want {
			t.Errorf("top of %d is %d, want %d", highest, got, want)
		}
	}
}

func TestBars_StacksSeriesWithoutGaps(t *testing.T) {
	t.Parallel()
	b := Bars{ID: "b", Series: []Series{{"a", Good}, {"b", Bad}}, Buckets: []Bucket{{Values: []int{4, 1}}}}
	if got, want := b.path(0), "M1 150v-120h958v120z"; got != want {
		t.Errorf("lower box is %s, want %s", got, want)
	}
	if got, want := b.path(1), "M1 30v-30h958v30z"; got != want {
		t.Errorf("upper box is %s, want %s", got, want)
	}
}

func TestBars_TableHasEveryNumber(t *testing.T) {
	t.Parallel()
	doc, _ := render(t, bars(sampleOutcomes()))
	if rows := len(children(children(doc, "tbody")[0], "tr")); rows != 48 {
		t.Errorf("the hidden table has %d rows, want 48", rows)
	}
	var figure *html.Node
	each(doc, func(n *html.Node) {
		if n.Data == "figcaption" {
			figure = n
		}
	})
	if figure == nil {
		t.Error("the chart has no legend")
	}
}

func TestStrip_SaysItsCounts(t *testing.T) {
	t.Parallel()
	s := Strip{Good, Good, Bad, Wait}
	if got, want := s.title(), "Last 4 attempts: 2 delivered, 2 not"; got != want {
		t.Errorf("title is %q, want %q", got, want)
	}
	if got, want := s.path(Bad), "M9.5 5V15"; got != want {
		t.Errorf("path is %q, want %q", got, want)
	}
}

func TestSchedule_TellsItsSpanAndJitter(t *testing.T) {
	t.Parallel()
	s := standardSchedule()
	if got, want := plain(s.title()), "18 attempts over 5 d 7 h"; got != want {
		t.Errorf("title is %q, want %q", got, want)
	}
	shortest, longest := s.bounds(100 * time.Second)
	if shortest != 90*time.Second || longest != 110*time.Second {
		t.Errorf("bounds are %v and %v, want 90 s and 110 s", shortest, longest)
	}
	if places := s.places(); len(places) != 18 || places[17] != lineRight {
		t.Errorf("%d places, the last at %v", len(places), places[len(places)-1])
	}
}

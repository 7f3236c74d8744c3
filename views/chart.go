package views

import (
	"math"
	"strconv"
	"time"
)

// num writes a coordinate with one digit after the point, which is finer than
// any screen shows it.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// The time line is drawn on a canvas of this size, in its own units.
const (
	lineWidth  = 900.0
	lineLeft   = 30.0
	lineRight  = 876.0
	labelWidth = 7.0 // of one letter, on the generous side
)

// logAxis maps a time since the first attempt to a place on the line. Waits grow
// by factors, so only a logarithm shows both seconds and days.
type logAxis struct {
	span time.Duration
}

func (a logAxis) x(d time.Duration) float64 {
	if d < 0 {
		d = 0
	}
	return lineLeft + math.Log10(d.Seconds()+1)/math.Log10(a.span.Seconds()+1)*(lineRight-lineLeft)
}

// axisTick is a labelled instant of the axis.
type axisTick struct {
	x     float64
	label string
}

// ticks are the round times that fit below the line without touching.
func (a logAxis) ticks() []axisTick {
	marks := []struct {
		at    time.Duration
		label string
	}{
		{time.Second, "1 s"}, {10 * time.Second, "10 s"}, {time.Minute, "1 min"}, {10 * time.Minute, "10 min"},
		{time.Hour, "1 h"}, {6 * time.Hour, "6 h"}, {24 * time.Hour, "1 d"}, {3 * 24 * time.Hour, "3 d"}, {7 * 24 * time.Hour, "7 d"},
	}
	var ticks []axisTick
	free := lineLeft + 100 // room for "first attempt"
	for _, m := range marks {
		x := a.x(m.at)
		if m.at > a.span || x < free {
			continue
		}
		ticks = append(ticks, axisTick{x, m.label})
		free = x + float64(len(m.label)+3)*labelWidth
	}
	return ticks
}

// dot is an attempt on the time line: filled when it happened, hollow when it
// is still to come.
type dot struct {
	x      float64
	label  string
	anchor string
	tone   Tone
	future bool
	next   bool
}

// line is the drawn time line of a task.
type line struct {
	axis logAxis
	dots []dot
	// now is where the present lies, negative when the story is over.
	now float64
}

// timelineOf places a task's attempts. A label that would touch one already
// placed is left out; the last attempt's and the next one's come first.
func timelineOf(p TaskProps) line {
	var start, end time.Time
	if n := len(p.Attempts); n > 0 {
		start, end = p.Attempts[n-1].StartedAt, p.Attempts[0].StartedAt
	} else {
		start = p.CreatedAt
	}
	if n := len(p.Future); n > 0 {
		end = p.Future[n-1]
	}
	span := max(end.Sub(start), 10*time.Second)
	l := line{axis: logAxis{span}, now: -1}
	for i := len(p.Attempts) - 1; i >= 0; i-- {
		a := p.Attempts[i]
		l.dots = append(l.dots, dot{x: l.axis.x(a.StartedAt.Sub(start)), label: a.Short, tone: a.tone()})
	}
	for i, at := range p.Future {
		d := dot{x: l.axis.x(at.Sub(start)), tone: Calm, future: true}
		if i == 0 {
			d.next, d.tone, d.label = true, p.State.tone(), "next, "+relative(p.Layout.Now, at)
		}
		l.dots = append(l.dots, d)
	}
	if len(p.Future) > 0 && len(p.Attempts) > 0 {
		l.now = l.axis.x(p.Layout.Now.Sub(start))
	}
	l.thinLabels(len(p.Attempts))
	return l
}

// thinLabels keeps the labels that do not overlap; past is how many dots lie in
// the past.
func (l line) thinLabels(past int) {
	type reach struct{ from, to float64 }
	var taken []reach
	order := make([]int, 0, len(l.dots))
	if past < len(l.dots) {
		order = append(order, past)
	}
	for i := past - 1; i >= 0; i-- {
		order = append(order, i)
	}
	for _, i := range order {
		d := &l.dots[i]
		half := float64(len([]rune(d.label))) * labelWidth / 2
		from, to := d.x-half, d.x+half
		d.anchor = "middle"
		if from < 4 {
			from, to, d.anchor = d.x-6, d.x-6+2*half, "start"
		}
		if to > lineWidth-4 {
			from, to, d.anchor = d.x+6-2*half, d.x+6, "end"
		}
		for _, t := range taken {
			if from < t.to && t.from < to {
				d.label = ""
			}
		}
		if d.label != "" {
			taken = append(taken, reach{from, to})
		}
	}
	for i := past + 1; i < len(l.dots); i++ {
		l.dots[i].label = ""
	}
}

package views

import (
	"math"
	"strings"
	"time"
)

// Bars is a chart of counts over time, each bar a stack of its series.
type Bars struct {
	// ID is unique on the page; Title says what is counted, per what.
	ID, Title string
	Series    []Series
	Buckets   []Bucket
	// From and To stand at the ends of the axis: "24 h ago", "now".
	From, To string
}

// Series is one kind of count, the lowest in the stack first.
type Series struct {
	Name string
	Tone Tone
}

// Bucket is the counts of one stretch of time, one value per series.
type Bucket struct {
	At     time.Time
	Values []int
}

// The canvas of the bars, in its own units; it is stretched to the page.
const (
	barsWidth  = 960.0
	barsHeight = 150.0
)

func (b Bars) empty() bool {
	for _, bucket := range b.Buckets {
		for _, v := range bucket.Values {
			if v > 0 {
				return false
			}
		}
	}
	return true
}

// top is the end of the scale: the highest stack, rounded up so that the lines stand
// at round counts.
func (b Bars) top() int {
	highest := 1
	for _, bucket := range b.Buckets {
		sum := 0
		for _, v := range bucket.Values {
			sum += v
		}
		highest = max(highest, sum)
	}
	power := math.Pow(10, math.Floor(math.Log10(float64(highest))))
	for _, step := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if top := step * power; top >= float64(highest) && top == math.Trunc(top) {
			return int(top)
		}
	}
	return highest
}

// path draws all boxes of one series as one path.
func (b Bars) path(series int) string {
	if len(b.Buckets) == 0 {
		return ""
	}
	var d strings.Builder
	width, scale := barsWidth/float64(len(b.Buckets)), barsHeight/float64(b.top())
	gap := min(2, width/4)
	for i, bucket := range b.Buckets {
		if series >= len(bucket.Values) || bucket.Values[series] <= 0 {
			continue
		}
		below := 0
		for _, v := range bucket.Values[:series] {
			below += max(v, 0)
		}
		height := float64(bucket.Values[series]) * scale
		x, bottom := float64(i)*width+gap/2, barsHeight-float64(below)*scale
		d.WriteString("M" + num(x) + " " + num(bottom) + "v-" + num(height) + "h" + num(width-gap) + "v" + num(height) + "z")
	}
	return d.String()
}

func (b Bars) sum(series int) int {
	sum := 0
	for _, bucket := range b.Buckets {
		if series < len(bucket.Values) {
			sum += bucket.Values[series]
		}
	}
	return sum
}

func (b Bars) summary() string {
	parts := make([]string, len(b.Series))
	for i, s := range b.Series {
		parts[i] = count(b.sum(i)) + " " + s.Name
	}
	return b.Title + ": " + strings.Join(parts, ", ")
}

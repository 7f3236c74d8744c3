package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// chart draws how the rate of deliveries and a latency go with something that grows, over a logarithmic axis.
type chart struct {
	title  string
	points []point
}

type point struct{ x, rate, p99 float64 }

const (
	chartWidth  = 640
	chartHeight = 300
	chartLeft   = 64
	chartRight  = 64
	chartTop    = 48
	chartBottom = 56
)

// chartStyle follows the reader's theme. The colours are told apart without seeing red from green.
const chartStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#57606a}.title{font-size:15px;font-weight:600;fill:#1f2328}
.axis{stroke:#d0d7de}.rate{stroke:#0a5fd6;fill:#0a5fd6}.p99{stroke:#bc4c00;fill:#bc4c00}
path{fill:none!important;stroke-width:2}.p99 path{stroke-dasharray:6 4}text.rate,text.p99{stroke:none}
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#f0f6fc}.axis{stroke:#3d444d}.rate{stroke:#6cb0ff;fill:#6cb0ff}.p99{stroke:#ffa657;fill:#ffa657}}
</style>`

// svg is the chart as a picture that stands by itself.
func (c chart) svg() string {
	rateTop, p99Top := 0.0, 0.0
	for _, p := range c.points {
		rateTop, p99Top = max(rateTop, p.rate), max(p99Top, p.p99)
	}
	rateTop, p99Top = roundUp(rateTop), roundUp(p99Top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">%s`,
		chartWidth, chartHeight, html.EscapeString(c.summary()), chartStyle)
	fmt.Fprintf(&b, "\n"+`<text class="title" x="%d" y="24">%s</text>`, chartLeft, html.EscapeString("By "+c.title))
	for i := range 5 {
		share := float64(i) / 4
		y := chartY(share)
		fmt.Fprintf(&b, "\n"+`<line class="axis" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, chartLeft, y, chartWidth-chartRight, y)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, chartLeft-8, y+4, axisLabel(rateTop*share))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f">%s</text>`, chartWidth-chartRight+8, y+4, axisLabel(p99Top*share))
	}
	for i, p := range c.points {
		fmt.Fprintf(&b, "\n"+`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, c.x(i), chartHeight-chartBottom+22, axisLabel(p.x))
	}
	c.draw(&b, "rate", func(p point) float64 { return p.rate / rateTop })
	c.draw(&b, "p99", func(p point) float64 { return p.p99 / p99Top })
	fmt.Fprintf(&b, "\n"+`<text class="rate" x="%d" y="%d">deliveries/s (left)</text>`, chartLeft, chartHeight-8)
	fmt.Fprintf(&b, `<text class="p99" x="%d" y="%d" text-anchor="end">p99 from publishing to receipt, ms (right)</text>`, chartWidth-chartRight, chartHeight-8)
	b.WriteString("\n</svg>\n")
	return b.String()
}

func (c chart) draw(b *strings.Builder, class string, share func(point) float64) {
	var path, dots strings.Builder
	for i, p := range c.points {
		x, y := c.x(i), chartY(share(p))
		fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x, y)
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	}
	fmt.Fprintf(b, "\n"+`<g class="%s"><path d="%s"/>%s</g>`, class, path.String(), dots.String())
}

// summary says in words what the picture shows.
func (c chart) summary() string {
	parts := make([]string, len(c.points))
	for i, p := range c.points {
		parts[i] = fmt.Sprintf("%.0f: %.0f deliveries/s, p99 %.0f ms", p.x, p.rate, p.p99)
	}
	return "By " + c.title + ". " + strings.Join(parts, "; ")
}

// x places the i-th point by the logarithm of its value.
func (c chart) x(i int) float64 {
	const width = chartWidth - chartLeft - chartRight - 40
	first, last := math.Log(c.points[0].x), math.Log(c.points[len(c.points)-1].x)
	share := 0.5
	if last > first {
		share = (math.Log(c.points[i].x) - first) / (last - first)
	}
	return chartLeft + 20 + share*width
}

func chartY(share float64) float64 {
	return chartHeight - chartBottom - share*(chartHeight-chartTop-chartBottom)
}

// roundUp is the next number of one digit and zeros, or one and a half of that, that four divides well enough for an axis.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10} {
		if step*unit >= v {
			return step * unit
		}
	}
	return 10 * unit
}

func axisLabel(v float64) string {
	switch {
	case v >= 1000 && math.Mod(v, 100) == 0:
		return strconv.FormatFloat(v/1000, 'f', -1, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

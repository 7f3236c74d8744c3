package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"entrega/internal/tenant"
)

var picturesOut = flag.String("pictures.out", filepath.Join("..", "..", "docs", "pictures"), "folder that BenchmarkPictures writes to")

const (
	pictureWidth, pictureHeight = 1280, 940
	// pictureScale is how many dots of the file are one of the page, so that letters are sharp on fine screens.
	pictureScale = 2
	// pictureLimit is the most bytes of a picture: README loads eight of them.
	pictureLimit = 300_000
)

// BenchmarkPictures makes the pictures in README: it fills a new installation with a market's deliveries of a day, opens four
// pages of it in the browser, and writes each in the light and in the dark theme. It measures nothing.
func BenchmarkPictures(b *testing.B) {
	for range b.N {
		m := openMarket(b)
		if err := os.MkdirAll(*picturesOut, 0o755); err != nil {
			b.Fatal(err)
		}
		tab := m.browser(marketOwner)
		tab.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: pictureWidth, Height: pictureHeight, DeviceScaleFactor: pictureScale}))
		for _, page := range m.pages() {
			tab.open(page.path)
			for _, theme := range []string{"light", "dark"} {
				m.takePicture(tab, page.name+"-"+theme+".png", theme)
			}
		}
	}
}

// takePicture writes what stands in the tab, in a theme, to a file of the folder.
func (m *market) takePicture(tab *tab, name, theme string) {
	m.t.Helper()
	tab.scheme(theme)
	tab.await("its letters", `() => document.fonts.ready.then(() => document.querySelector("time") !== null)`)
	raw, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		m.t.Fatal(err)
	}
	small, err := fewerColours(raw)
	if err != nil {
		m.t.Fatal(err)
	}
	if len(small) > pictureLimit {
		m.t.Errorf("%s has %d bytes, more than %d", name, len(small), pictureLimit)
	}
	if err := os.WriteFile(filepath.Join(*picturesOut, name), small, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// fewerColours encodes a picture again with the 256 colours that most of its dots have, which nobody can tell from all of them on
// a page of text, in a third of the bytes.
func fewerColours(raw []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read the picture: %w", err)
	}
	counts := map[color.Color]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y))]++
		}
	}
	palette := color.Palette(slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] }))
	few := image.NewPaletted(full.Bounds(), palette[:min(len(palette), 256)])
	draw.Draw(few, few.Bounds(), full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		return nil, fmt.Errorf("write the picture: %w", err)
	}
	return out.Bytes(), nil
}

// openMarket serves a filled installation from this process. It works no queue, so that what waits goes on waiting.
func openMarket(t testing.TB) *market {
	t.Helper()
	theChromium(t) // Without a browser there is nothing to fill.
	c, err := LoadConfig(env("ENTREGA_DATA="+dataDir(t), "ENTREGA_LISTEN=127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	a, err := newApp(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- a.run(ctx, []string{"work"}, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	<-ready
	owner, err := a.accounts.CreateUser(ctx, cli(), tenant.NewUser{Email: marketOwner, Password: browserPassword})
	if err != nil {
		t.Fatal(err)
	}
	m := &market{installation: &installation{t: t, url: a.address()}, app: a}
	if err := m.fill(ctx, owner.ID); err != nil {
		t.Fatal(err)
	}
	return m
}

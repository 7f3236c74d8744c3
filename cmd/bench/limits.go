package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"entrega/jobs/rawlimit"
)

// The sizes of the limits.
const (
	limitJobs  = 20_000
	limitPosts = 20_000
	limitConns = 64
	commitFor  = 4 * time.Second
	committers = 8
)

// The names of the limits, which figures compare themselves with.
const (
	limitRP     = "limit: RP, River jobs that send one signed POST"
	limitNoop   = "limit: River jobs that do nothing"
	limitC      = "limit: C, single-row commits"
	limitPost64 = "limit: bare POSTs, 64 connections"
	limitPost1  = "limit: bare POSTs, 1 connection"
)

// limits measures what the machine allows.
func (b *bench) limits(ctx context.Context) error {
	for _, l := range []struct {
		name string
		do   func(ctx context.Context) (float64, error)
	}{
		{limitPost64, func(ctx context.Context) (float64, error) { return b.barePosts(ctx, limitConns) }},
		{limitPost1, func(ctx context.Context) (float64, error) { return b.barePosts(ctx, 1) }},
		{limitC, b.commits},
		{limitNoop, func(ctx context.Context) (float64, error) {
			return b.riverJobs(ctx, func(context.Context, int64) error { return nil })
		}},
		{limitRP, b.riverPosts},
	} {
		rate, err := l.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		b.figures.add(l.name, "/s", rate)
	}
	return nil
}

// riverPosts measures RP.
func (b *bench) riverPosts(ctx context.Context) (float64, error) {
	n := b.size(limitJobs)
	sink := b.receiver.sink(n)
	send, done := b.poster(sink)
	defer done()
	before := b.usage(nil)
	rate, err := b.riverJobs(ctx, send)
	b.addUsage("RP", b.usage(nil).since(before), n)
	return rate, err
}

// poster sends signed POSTs of 1 KiB to a sink, as whoever writes to net/http does.
func (b *bench) poster(s *sink) (send func(ctx context.Context, id int64) error, done func()) {
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
	url, key := b.receiver.url(s), []byte("a key that is as long as a real one")
	return func(ctx context.Context, job int64) error {
		body := []byte(payload(time.Now()))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.GetBody = nil
		stamp, id := strconv.FormatInt(time.Now().Unix(), 10), strconv.FormatInt(job, 10)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {id}, "Webhook-Timestamp": {stamp},
			"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}, transport.CloseIdleConnections
}

func (b *bench) riverJobs(ctx context.Context, do func(context.Context, int64) error) (rate float64, err error) {
	db, err := b.database(ctx, 40)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	if err := rawlimit.Migrate(ctx, db.pool); err != nil {
		return 0, err
	}
	n := b.size(limitJobs)
	took, err := rawlimit.Work(ctx, db.pool, n, do)
	return float64(n) / took.Seconds(), err
}

// commits measures C.
func (b *bench) commits(ctx context.Context) (rate float64, err error) {
	db, err := b.database(ctx, committers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	if _, err := db.pool.Exec(ctx, `create table rows (id bigint generated always as identity primary key, data bytea not null)`); err != nil {
		return 0, err
	}
	var done atomic.Int64
	row, start := []byte(payload(time.Now())), time.Now()
	err = parallel(ctx, committers, func(ctx context.Context, _ int) error {
		for time.Since(start) < commitFor {
			if _, err := db.pool.Exec(ctx, `insert into rows (data) values ($1)`, row); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / time.Since(start).Seconds(), err
}

// barePosts sends to the receiver with nothing in between.
func (b *bench) barePosts(ctx context.Context, conns int) (float64, error) {
	n := b.size(limitPosts)
	sink := b.receiver.sink(n)
	send, done := b.poster(sink)
	defer done()
	var next atomic.Int64
	start := time.Now()
	err := parallel(ctx, conns, func(ctx context.Context, _ int) error {
		for i := next.Add(1); i <= int64(n); i = next.Add(1) {
			if err := send(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(n) / time.Since(start).Seconds(), err
}

// client is one HTTP/1.1 connection with as little as possible around it, so that the generator takes little from what it measures.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{Conn: conn, in: bufio.NewReader(conn)}, nil
}

func rawPost(host, path, key, body string) []byte {
	auth := ""
	if key != "" {
		auth = "Authorization: Bearer " + key + "\r\n"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, host, auth, len(body), body)
}

// send writes a request and reads its answer.
func (c *client) send(request []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("answer %d: %s", resp.StatusCode, body)
	}
	return body, err
}

// parallel runs n of do and returns the first error, which ends the others.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(ctx, i); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

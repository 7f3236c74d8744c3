package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Record is one row of the ledger: what one attempt did, what came back, and what was decided. It is never changed.
type Record struct {
	ProjectID      string     `db:"project_id"`
	TaskID         int64      `db:"task_id"`
	Seq            int        `db:"seq"`
	Attempt        int        `db:"attempt"`
	Charged        bool       `db:"charged"`
	Kind           string     `db:"kind"`
	Trigger        Trigger    `db:"trigger"`
	IdempotencyKey *string    `db:"idempotency_key"`
	EventID        *string    `db:"event_id"`
	EndpointID     *string    `db:"endpoint_id"`
	OrderID        *string    `db:"order_id"`
	RecipientRef   []byte     `db:"recipient_ref"`
	PolicyProfile  string     `db:"policy_profile"`
	PolicyVersion  int        `db:"policy_version"`
	PolicyHash     []byte     `db:"policy_hash"`
	StartedAt      time.Time  `db:"started_at"`
	FinishedAt     time.Time  `db:"finished_at"`
	DNSUS          int64      `db:"dns_us"`
	ConnectUS      int64      `db:"connect_us"`
	TLSUS          int64      `db:"tls_us"`
	FirstByteUS    int64      `db:"first_byte_us"`
	TotalUS        int64      `db:"total_us"`
	Peer           *string    `db:"peer"`
	Class          string     `db:"class"`
	Status         *int       `db:"status"`
	ErrorType      *string    `db:"error_type"`
	Phase          *string    `db:"phase"`
	Error          *string    `db:"error"`
	Decision       Verdict    `db:"decision"`
	Reason         string     `db:"reason"`
	BaseWaitMS     *int64     `db:"base_wait_ms"`
	WaitMS         *int64     `db:"wait_ms"`
	Cap            *string    `db:"cap"`
	RetryAfterRaw  *string    `db:"retry_after_raw"`
	RetryAfterRead *string    `db:"retry_after_read"`
	NextAttemptAt  *time.Time `db:"next_attempt_at"`
	RequestSHA256  []byte     `db:"request_sha256"`
	ResponseSHA256 []byte     `db:"response_sha256"`
	NodeID         string     `db:"node_id"`
	PrevHash       []byte     `db:"prev_hash"`
	Hash           []byte     `db:"hash"`
}

// Duration is how long the attempt took.
func (r Record) Duration() time.Duration { return time.Duration(r.TotalUS) * time.Microsecond }

// Canonical is the record as the hash sees it: a JSON object with sorted keys, no white space, instants in RFC 3339 UTC with six
// digits of microseconds, bytes in lower-case hex, null for what was not known, and without prev_hash and hash. Every string is
// valid UTF-8 without U+2028 and U+2029, so that common JSON encoders agree to the byte.
func (r Record) Canonical() []byte {
	var b bytes.Buffer
	b.Grow(1024)
	w := canonicalWriter{b: &b}
	w.number("attempt", int64(r.Attempt))
	w.numberOrNull("base_wait_ms", r.BaseWaitMS)
	w.textOrNull("cap", r.Cap)
	w.boolean("charged", r.Charged)
	w.text("class", r.Class)
	w.number("connect_us", r.ConnectUS)
	w.text("decision", string(r.Decision))
	w.number("dns_us", r.DNSUS)
	w.textOrNull("endpoint_id", r.EndpointID)
	w.textOrNull("error", r.Error)
	w.textOrNull("error_type", r.ErrorType)
	w.textOrNull("event_id", r.EventID)
	w.instant("finished_at", &r.FinishedAt)
	w.number("first_byte_us", r.FirstByteUS)
	w.textOrNull("idempotency_key", r.IdempotencyKey)
	w.text("kind", r.Kind)
	w.instant("next_attempt_at", r.NextAttemptAt)
	w.text("node_id", r.NodeID)
	w.textOrNull("order_id", r.OrderID)
	w.textOrNull("peer", r.Peer)
	w.textOrNull("phase", r.Phase)
	w.bytes("policy_hash", r.PolicyHash)
	w.text("policy_profile", r.PolicyProfile)
	w.number("policy_version", int64(r.PolicyVersion))
	w.text("project_id", r.ProjectID)
	w.text("reason", r.Reason)
	w.bytes("recipient_ref", r.RecipientRef)
	w.bytes("request_sha256", r.RequestSHA256)
	w.bytes("response_sha256", r.ResponseSHA256)
	w.textOrNull("retry_after_raw", r.RetryAfterRaw)
	w.textOrNull("retry_after_read", r.RetryAfterRead)
	w.number("seq", int64(r.Seq))
	w.instant("started_at", &r.StartedAt)
	w.statusOrNull("status", r.Status)
	w.number("task_id", r.TaskID)
	w.number("tls_us", r.TLSUS)
	w.number("total_us", r.TotalUS)
	w.text("trigger", string(r.Trigger))
	w.numberOrNull("wait_ms", r.WaitMS)
	b.WriteByte('}')
	return b.Bytes()
}

// seal chains the record to the one before it and sets its hash: SHA-256 over prev_hash, then the canonical form.
func (r *Record) seal(prev []byte) {
	r.PrevHash = prev
	r.Hash = r.computeHash()
}

func (r Record) computeHash() []byte {
	h := sha256.New()
	h.Write(r.PrevHash)
	h.Write(r.Canonical())
	return h.Sum(nil)
}

// genesis is what the first record of a task chains to.
func genesis(taskID int64) []byte {
	sum := sha256.Sum256([]byte("entrega/ledger/1|" + strconv.FormatInt(taskID, 10)))
	return sum[:]
}

// ChainError says where a task's chain stops being true.
type ChainError struct {
	TaskID   int64
	Seq      int
	Sentence string
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("task %d, record %d: %s", e.TaskID, e.Seq, e.Sentence)
}

// VerifyChain recomputes the chain of one task, whose records come in the order of Seq, and reports the first difference as a
// *ChainError. Waits are recomputed by VerifyWait.
func VerifyChain(records []Record) error {
	if len(records) == 0 {
		return nil
	}
	prev := genesis(records[0].TaskID)
	for i, r := range records {
		switch {
		case r.Seq != i+1:
			return &ChainError{TaskID: r.TaskID, Seq: i + 1, Sentence: fmt.Sprintf("is missing; the next one found is %d", r.Seq)}
		case !bytes.Equal(r.PrevHash, prev):
			return &ChainError{TaskID: r.TaskID, Seq: r.Seq, Sentence: "does not follow the record before it"}
		case !bytes.Equal(r.Hash, r.computeHash()):
			return &ChainError{TaskID: r.TaskID, Seq: r.Seq, Sentence: "was changed after it was written"}
		}
		prev = r.Hash
	}
	return nil
}

// canonicalWriter writes the members of one JSON object; the caller gives them in sorted order.
type canonicalWriter struct {
	b       *bytes.Buffer
	started bool
}

func (w *canonicalWriter) key(k string) {
	if w.started {
		w.b.WriteByte(',')
	} else {
		w.b.WriteByte('{')
		w.started = true
	}
	w.b.WriteByte('"')
	w.b.WriteString(k)
	w.b.WriteString(`":`)
}

func (w *canonicalWriter) null(k string) { w.key(k); w.b.WriteString("null") }

func (w *canonicalWriter) number(k string, n int64) {
	w.key(k)
	w.b.Write(strconv.AppendInt(w.b.AvailableBuffer(), n, 10))
}

func (w *canonicalWriter) numberOrNull(k string, n *int64) {
	if n == nil {
		w.null(k)
		return
	}
	w.number(k, *n)
}

func (w *canonicalWriter) statusOrNull(k string, n *int) {
	if n == nil {
		w.null(k)
		return
	}
	w.number(k, int64(*n))
}

func (w *canonicalWriter) boolean(k string, v bool) {
	w.key(k)
	w.b.WriteString(strconv.FormatBool(v))
}

func (w *canonicalWriter) text(k, v string) {
	w.key(k)
	writeText(w.b, v)
}

// writeText writes a text as JSON.
func writeText(b *bytes.Buffer, v string) {
	if isPlain(v) {
		b.WriteByte('"')
		b.WriteString(v)
		b.WriteByte('"')
		return
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	// Encoding a string cannot fail; the encoder ends it with a line feed, which is taken off again.
	_ = enc.Encode(v)
	b.Truncate(b.Len() - 1)
}

// isPlain reports whether JSON writes a text as it is: ids, words and addresses are such.
func isPlain(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *canonicalWriter) textOrNull(k string, v *string) {
	if v == nil {
		w.null(k)
		return
	}
	w.text(k, *v)
}

func (w *canonicalWriter) bytes(k string, v []byte) {
	if v == nil {
		w.null(k)
		return
	}
	w.key(k)
	w.b.WriteByte('"')
	w.b.Write(hex.AppendEncode(w.b.AvailableBuffer(), v))
	w.b.WriteByte('"')
}

func (w *canonicalWriter) instant(k string, t *time.Time) {
	if t == nil {
		w.null(k)
		return
	}
	w.key(k)
	w.b.WriteByte('"')
	w.b.Write(t.UTC().AppendFormat(w.b.AvailableBuffer(), "2006-01-02T15:04:05.000000Z"))
	w.b.WriteByte('"')
}

// textField makes a text safe for Postgres and for the canonical form, cut to max bytes at a rune's edge; empty becomes NULL.
func textField(s string, max int) *string {
	if s == "" {
		return nil
	}
	s = cleanText(s)
	if len(s) > max {
		s = strings.ToValidUTF8(s[:max], "")
	}
	return &s
}

func cleanText(s string) string {
	if isPlain(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch r {
		case 0:
			return '\uFFFD'
		case '\u2028', '\u2029':
			return '\n'
		default:
			return r
		}
	}, s)
}

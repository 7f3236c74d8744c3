package jobs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
)

// jitterLabel starts the text that is hashed, so that these bytes mean nothing else anywhere. Its number changes if the
// recipe ever does.
const jitterLabel = "entrega/jitter/1"

// Wait is the wait after the failure of an attempt, counted from 1: base as the policy gives it, chosen with jitter. Both
// are in whole milliseconds and never negative.
//
// Chosen depends on nothing but the task, the attempt and the policy, so anyone with a ledger row and the policy can
// compute it again. The recipe, in IEEE 754 double precision and in the order written:
//
//	text   = "entrega/jitter/1|" + task id + "|" + attempt + "|" + policy hash
//	n      = the first 8 bytes of SHA-256(text), big endian
//	u      = n / 2^64
//	chosen = floor(base x (1 + fraction x (2 x u - 1)) + 0.5)      in milliseconds
//	chosen = floor(base x u + 0.5)                                 for full jitter
//
// Task id and attempt are decimal without leading zeros, the policy hash is 64 lower-case hexadecimal digits, and the
// text is ASCII.
func (p Policy) Wait(taskID int64, attempt int) (base, chosen time.Duration) {
	base = p.BaseWait(attempt)
	ms := float64(base.Milliseconds())
	switch u := jitterUnit(taskID, attempt, p.Hash); {
	case p.Jitter.Full:
		chosen = milliseconds(float64(ms * u))
	case p.Jitter.Fraction > 0:
		chosen = milliseconds(spread(ms, p.Jitter.Fraction, u))
	default:
		chosen = base
	}
	return base, chosen
}

// WaitBounds are the shortest and the longest wait that jitter can make of the wait after an attempt.
func (p Policy) WaitBounds(attempt int) (least, most time.Duration) {
	base := p.BaseWait(attempt)
	if p.Jitter.Full {
		return 0, base
	}
	ms := float64(base.Milliseconds())
	return milliseconds(spread(ms, p.Jitter.Fraction, 0)), milliseconds(spread(ms, p.Jitter.Fraction, 1))
}

// spread is ms x (1 + fraction x (2u - 1)). The conversions keep a compiler from fusing a multiplication with an addition,
// which would round once less on some processors and so choose another wait.
func spread(ms, fraction, u float64) float64 {
	deviation := float64(fraction * float64(float64(2*u)-1))
	return float64(ms * float64(1+deviation))
}

// jitterUnit is a number from 0 to 1 that is different for each attempt of each task under each policy.
func jitterUnit(taskID int64, attempt int, policyHash [32]byte) float64 {
	text := make([]byte, 0, 128)
	text = append(text, jitterLabel+"|"...)
	text = strconv.AppendInt(text, taskID, 10)
	text = append(text, '|')
	text = strconv.AppendInt(text, int64(attempt), 10)
	text = append(text, '|')
	text = hex.AppendEncode(text, policyHash[:])
	sum := sha256.Sum256(text)
	return float64(binary.BigEndian.Uint64(sum[:8])) / (1 << 64)
}

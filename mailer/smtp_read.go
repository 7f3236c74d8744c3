package mailer

import (
	"regexp"
	"slices"
)

// Stage is how far a conversation with a relay had come.
type Stage string

// The stages of a conversation, in their order.
const (
	StageConnect  Stage = "connect"
	StageTLS      Stage = "tls"
	StageEHLO     Stage = "ehlo"
	StageSTARTTLS Stage = "starttls"
	StageAuth     Stage = "auth"
	StageMail     Stage = "mail"
	StageRcpt     Stage = "rcpt"
	StageData     Stage = "data"
	// StageBody is the sending of the message itself, before the final dot.
	StageBody Stage = "body"
	// StageDot is waiting for the answer to the final dot: from here on the relay may have the message.
	StageDot Stage = "dot"
)

// before tells the stages in which the relay has not yet heard of the message.
func (s Stage) beforeMail() bool {
	return s == StageConnect || s == StageTLS || s == StageEHLO || s == StageSTARTTLS || s == StageAuth
}

var enhancedCode = regexp.MustCompile(`^([245])\.(\d{1,3})\.(\d{1,3})(?:\s|$)`)

// enhancedOf reads the enhanced status code at the start of a reply's text (RFC 2034, section 4).
func enhancedOf(text string) string {
	m := enhancedCode.FindString(text)
	for len(m) > 0 && (m[len(m)-1] < '0' || m[len(m)-1] > '9') {
		m = m[:len(m)-1]
	}
	return m
}

// noSuchRecipient are the enhanced codes that say that nobody is there to get mail (RFC 3463, sections 3.2 and 3.3; RFC 7505 for
// 5.1.10).
var noSuchRecipient = []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"}

// readReply gives a relay's reply its meaning (3-retry.md, "Mail answers"). Code 0 is a reply that never came. The basic code decides;
// an enhanced code that contradicts it counts for nothing.
func readReply(stage Stage, code int, enhanced string) (v Verdict, suppress bool) {
	switch {
	case code == 0 && stage == StageDot:
		return Unknown, false
	case code == 0:
		return Failed, false
	case code/100 == 2 && stage == StageDot:
		return Accepted, false
	case code == 421:
		return Later, false
	case code/100 == 4:
		return Failed, false
	case code/100 != 5:
		return Failed, false
	case stage.beforeMail():
		return Refused, false
	case code == 552 && stage == StageRcpt && (enhanced == "" || enhanced == "4.5.3" || enhanced == "5.5.3"):
		// RFC 5321, section 4.5.3.1.10: too many recipients, from relays that know no 452.
		return Failed, false
	default:
		return Rejected, slices.Contains(noSuchRecipient, enhanced)
	}
}

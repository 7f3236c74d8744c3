// Package mailer owns notifications: one mail to one recipient about one order or account matter. It writes them down, composes
// and hands them to a transport, reads what the transport answers, keeps the caps and the suppressions, and takes in what
// providers tell later.
//
// It classifies and never waits: whether and when a mail is tried again is decided by package jobs, and every connection leaves
// through the guarded door of internal/egress. It knows nothing of pages, of the API's shape or of HTTP servers.
package mailer

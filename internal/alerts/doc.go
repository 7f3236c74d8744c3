// Package alerts owns what a person should look at: alert rows, the rules that raise them, and the scanner that follows the
// rules.
//
// An alert stands for one kind of trouble with one subject and counts its happenings. A scan raises it, and resolves it when
// its cause is gone; a person may acknowledge it or resolve it by hand. Alerts come from scans alone: what River's rescuer
// discards emits no event that one could wait for. Nothing is mailed, since mail may be the very thing that fails.
//
// The package reads the tables of tasks, attempts, events and endpoints and changes none of them. It knows nothing of HTTP or
// pages.
package alerts

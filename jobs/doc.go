// Package jobs is the one owner of every retry. It declares kinds of tasks and their policies, runs their handlers on River,
// decides after each attempt what comes next, writes the evidence to the ledger before River is told, and shows and changes tasks.
//
// It is the only importer of riverqueue. It knows nothing of webhooks, mail, HTTP pages or templates.
package jobs

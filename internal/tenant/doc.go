// Package tenant owns who may do what: users and their passwords, projects, members and roles, access requests, API keys,
// sessions, one-time links, and the audit log of what people did.
//
// A project is a tenant. Every statement on what belongs to one names project_id in its WHERE, so an id of another project
// is store.ErrNotFound, and every change writes its audit row in the same transaction. The package knows nothing of HTTP
// and nothing of tasks or endpoints: those packages take an Actor, ask what it may do, and write their own audit rows.
package tenant
